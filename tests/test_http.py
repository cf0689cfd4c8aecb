"""MCP over HTTP: the same tools, and nobody reaches them who should not. Real sockets on loopback."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import postgres_server
import pytest
import serving
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from grounded_mcp.errors import ConfigError
from grounded_mcp.faces.gate import access
from grounded_mcp.faces.http import listen
from grounded_mcp.faces.options import ServerOptions
from tests.conftest import Command

TOKEN = "correct-horse-battery"
ROUTES = ["/mcp", "/sse", "/messages/", "/healthz", "/metrics", "/no-such-page"]
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


@dataclass(frozen=True)
class Server:
    process: Any
    port: int
    log: Path


def started(home: Path, **settings: object) -> Iterator[Server]:
    with serving.http(home, **settings) as (process, port):
        yield Server(process, port, home / "log")


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=postgres_server.NEEDED)])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Settings for a store of either engine: who may call does not depend on it."""
    if request.param == "sqlite":
        yield {}
    else:
        with postgres_server.schema() as schema:
            yield {"store": postgres_server.url(), "store__postgres__schema": schema}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, store: dict[str, str]) -> Iterator[Server]:
    yield from started(tmp_path_factory.mktemp("open"), **store)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, store: dict[str, str]) -> Iterator[Server]:
    """A server with a token and tight limits."""
    yield from started(
        tmp_path_factory.mktemp("guarded"),
        **store,
        server__token=TOKEN,
        server__request_seconds=1.0,
        server__max_sessions=2,
        server__log_level="debug",
    )


def status(server: Server, path: str, method: str = "GET", body: str | bytes | None = None, **headers: str) -> int:
    """The status of one request; header names take ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.WAIT)
    try:
        connection.request(method, path, body, {"Host": f"127.0.0.1:{server.port}", **named})
        return connection.getresponse().status
    finally:
        connection.close()


def post(server: Server, body: str | bytes = PING, path: str = "/mcp", **headers: str) -> int:
    accept = {"Accept": "application/json, text/event-stream", "Content_Type": "application/json"}
    return status(server, path, "POST", body, **{**accept, **headers})


async def converse(client: Client) -> None:
    with anyio.fail_after(serving.WAIT):
        async with client:
            assert len((await client.list_tools()).tools) == 8
            await client.call_tool("remember_fact", {"text": "The build uses ninja."})
            found = await client.call_tool("ground_recall", {"query": "ninja"})
            assert "The build uses ninja." in found.structured_content["data"][0]["text"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("endpoint", ["mcp", "sse"])
def test_f2_the_sdk_client_remembers_and_recalls_over_both_transports(server: Server, endpoint: str, mode: Any) -> None:
    url = f"http://localhost:{server.port}/{endpoint}"

    async def talk() -> None:
        await converse(Client(url if endpoint == "mcp" else sse_client(url), mode=mode))

    anyio.run(talk)


def test_f2_a_client_with_the_token_is_served(guarded: Server) -> None:
    async def talk() -> None:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as web:
            url = f"http://127.0.0.1:{guarded.port}/mcp"
            await converse(Client(streamable_http_client(url, http_client=web)))

    anyio.run(talk)


# --- who may call -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize("route", ROUTES)
def test_case_48_t34_a_foreign_host_or_origin_reaches_no_route(server: Server, route: str, method: str) -> None:
    own = f"127.0.0.1:{server.port}"
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "localhost:1", f"{own}.evil.example", ""):
        assert status(server, route, method, Host=host) in (400, 421)
    for origin in ("http://evil.example", "null", "http://localhost:1", "http://localhost", f"http://{own}.evil"):
        assert status(server, route, method, Origin=origin) == 403


def test_case_48_the_servers_own_names_and_origin_pass(server: Server) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        own = f"{name}:{server.port}"
        assert status(server, "/healthz", Host=own) == 200
        assert status(server, "/healthz", Host=own, Origin=f"http://{own}") == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize("route", ROUTES)
def test_case_51_a_cross_site_simple_request_has_no_effect(server: Server, route: str, content_type: str) -> None:
    assert post(server, path=route, Content_Type=content_type) == 415


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize("route", [route for route in ROUTES if route != "/healthz"])
def test_case_50_without_the_token_every_route_says_401(guarded: Server, route: str, method: str) -> None:
    for wrong in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xff"):
        assert status(guarded, route, method, Authorization=wrong) == 401
    assert status(guarded, f"{route}?token={TOKEN}&access_token={TOKEN}", method) == 401


def test_case_50_health_needs_no_token_and_shows_only_ok_and_version(guarded: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=serving.WAIT)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    assert set(json.loads(answer.read())) == {"ok", "version"}
    assert answer.getheader("Server") is None
    assert answer.getheader("Access-Control-Allow-Origin") is None
    connection.close()


def test_case_50_the_token_is_in_no_log(guarded: Server) -> None:
    assert post(guarded, Authorization=f"Bearer {TOKEN}") in (200, 400)
    assert post(guarded, b"{" + TOKEN.encode(), Authorization=f"Bearer {TOKEN}") == 400
    assert TOKEN not in guarded.log.read_text(encoding="utf-8")


# --- where it may be bound --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "127.0.0.2", "192.0.2.7"])
def test_case_49_off_loopback_a_token_and_named_hosts_are_needed(host: str) -> None:
    with pytest.raises(ConfigError, match="no token is set"):
        access(host, 8765, ServerOptions())
    with pytest.raises(ConfigError, match=r"server\.allowed_hosts"):
        access(host, 8765, ServerOptions(token=TOKEN))
    rules = access(host, 8765, ServerOptions(token=TOKEN, allowed_hosts=("memory.example", "10.0.0.5:80", "fd00::1")))
    assert rules.hosts == {"memory.example:8765", "10.0.0.5:80", "[fd00::1]:8765"}
    assert "https://memory.example:8765" in rules.origins


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_case_49_on_loopback_neither_is_needed(host: str) -> None:
    assert access(host, 8765, ServerOptions()).hosts == {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}


def test_case_49_localhost_that_leads_elsewhere_is_not_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 8765))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: elsewhere)
    with pytest.raises(ConfigError, match="no token is set"):
        access("localhost", 8765, ServerOptions())


def test_case_49_a_server_that_would_expose_the_memory_does_not_start(tmp_path: Path, store: dict[str, str]) -> None:
    command = [sys.executable, "-m", "grounded_mcp", "serve", "--transport", "http", "--host", "0.0.0.0"]
    env = serving.environment(tmp_path, server__port=0, **store)
    ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=serving.WAIT)
    assert ran.returncode != 0
    assert ran.stdout == ""
    assert "no token is set" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_port_in_use_and_a_name_without_an_address_are_told(server: Server) -> None:
    with pytest.raises(ConfigError, match=f"port {server.port} cannot be bound"):
        listen("127.0.0.1", server.port)
    with pytest.raises(ConfigError, match="does not resolve"):
        listen("no such name", 0)


# --- clients that misbehave -------------------------------------------------------------------------------


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_number_that_is_no_port_is_told_in_one_line(command: Command, port: str) -> None:
    done = command("serve", "--transport", "http", "--port", port)
    assert done.returncode == 1
    assert f"server.port {port} is no port" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_case_47_a_body_over_four_mebibytes_is_refused(server: Server) -> None:
    assert post(server, b" " * (4 * 1024 * 1024 + 1)) == 413


def test_case_47_silent_clients_are_hung_up_on_and_a_good_one_is_served_meanwhile(guarded: Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", guarded.port), timeout=serving.WAIT) for _ in range(100)]
    for each in silent[::2]:
        each.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
    assert status(guarded, "/healthz") == 200
    assert [each.recv(1) for each in silent] == [b""] * 100
    for each in silent:
        each.close()


def test_case_47_a_body_that_trickles_in_is_given_up(guarded: Server) -> None:
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{guarded.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=serving.WAIT) as slow:
        slow.sendall(head.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_case_47_sessions_are_capped_and_unknown_ones_are_not_found(guarded: Server) -> None:
    initialize = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": serving.INITIALIZE})
    bearer = f"Bearer {TOKEN}"
    opened = [post(guarded, initialize, Authorization=bearer) for _ in range(4)]
    assert 503 in opened
    assert opened.count(200) <= 2
    for number in range(50):
        assert post(guarded, Authorization=bearer, Mcp_Session_Id=f"guess-{number}") == 404
    assert status(guarded, "/healthz") == 200


def test_case_52_a_session_is_no_way_around_the_token_and_ends_when_it_is_ended(tmp_path: Path) -> None:
    initialize = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": serving.INITIALIZE})
    bearer = f"Bearer {TOKEN}"
    with serving.http(tmp_path, server__token=TOKEN) as (process, port):
        server = Server(process, port, tmp_path / "log")
        session, other = (opened(server, initialize, bearer) for _ in range(2))
        assert session != other
        assert re.fullmatch(r"[0-9a-f]{32}", session)
        for wrong in ("Bearer other", "", f"Basic {TOKEN}"):
            for method in ("POST", "GET", "DELETE"):
                assert status(server, "/mcp", method, PING, Authorization=wrong, Mcp_Session_Id=session) == 401
        assert post(server, Authorization=bearer, Mcp_Session_Id=session) == 200
        assert status(server, "/mcp", "DELETE", Authorization=bearer, Mcp_Session_Id=session) == 200
        assert post(server, Authorization=bearer, Mcp_Session_Id=session) == 404
        assert post(server, Authorization=bearer, Mcp_Session_Id=other) == 200


def opened(server: Server, initialize: str, bearer: str) -> str:
    """The id of a new session."""
    named = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.WAIT)
    try:
        connection.request("POST", "/mcp", initialize, {**named, "Authorization": bearer})
        answer = connection.getresponse()
        answer.read()
        return answer.headers["Mcp-Session-Id"]
    finally:
        connection.close()


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_case_13_lone_surrogates_in_a_body_get_a_reply(server: Server, version: str) -> None:
    body = (
        rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ground_recall","arguments":{"query":"\ud800"},'
        b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )
    modern = {"Mcp_Method": "tools/call", "Mcp_Name": "ground_recall"} if version == "2026-07-28" else {}
    expected = 200 if modern else 400  # without a session the older protocol asks for one
    assert post(server, body, MCP_Protocol_Version=version, **modern) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_case_34_a_signal_ends_the_server_within_5_seconds_while_a_stream_is_open(tmp_path: Path) -> None:
    with serving.http(tmp_path) as (process, port):
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=serving.WAIT)
        stream.request("GET", "/sse")
        assert stream.getresponse().status == 200
        left = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(serving.WAIT) == 0
        assert time.monotonic() - left < 5
        stream.close()
