"""Long calls: a cancelled one stops and is not answered, one that goes on says so; the server lives on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import postgres_server
import pytest
import serving
from mcp import Client, StdioServerParameters

NEVER_ENDS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
ENDLESS = f"""
import sys
from grounded_mcp.stores.postgres import PostgresStore
from grounded_mcp.stores.sqlite import SqliteStore

def lexical(self, terms, where, k):
    try:
        print("searching", file=sys.stderr, flush=True)
        return self._database.read(lambda db: list(db.execute("{NEVER_ENDS}")))
    finally:
        print("stopped", file=sys.stderr, flush=True)

PostgresStore.lexical = SqliteStore.lexical = lexical
"""
"""A search that no engine finishes by itself."""

SEARCH: dict[str, Any] = {"name": "ground_recall", "arguments": {"query": "ninja"}}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=postgres_server.NEEDED)])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A server's settings for a store of either engine."""
    if request.param == "sqlite":
        yield {}
    else:
        with postgres_server.schema() as schema:
            yield {"store": postgres_server.url(), "store__postgres__schema": schema}


def said(process: serving.Process, word: bytes) -> bool:
    until = time.monotonic() + serving.WAIT
    while word not in process.stderr and time.monotonic() < until:
        time.sleep(0.02)
    return word in process.stderr


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def cancelled(number: int) -> dict[str, Any]:
    params = {"requestId": number, "reason": "the person pressed escape"}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def test_f1_a_cancelled_recall_stops_is_not_answered_and_leaves_the_server_alive(
    tmp_path: Path, store: dict[str, str]
) -> None:
    with serving.stdio(tmp_path, ENDLESS + serving.STDIO, **store) as process:
        process.send(request(5, "tools/call", SEARCH))
        assert said(process, b"searching")
        process.send(cancelled(5))
        assert said(process, b"stopped"), process.stderr
        assert process.call("memory_status")["structuredContent"]["embedder"] == "off"
        assert [line for line in process.lines if b'"id":5' in line] == []


def test_f1_forty_cancelled_recalls_leave_room_for_the_next_call(tmp_path: Path, store: dict[str, str]) -> None:
    with serving.stdio(tmp_path, ENDLESS + serving.STDIO, **store) as process:
        numbers = range(100, 140)
        process.send(*(request(number, "tools/call", SEARCH) for number in numbers))
        assert said(process, b"searching")
        process.send(*(cancelled(number) for number in numbers))
        assert process.call("memory_status")["structuredContent"]["embedder"] == "off"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_f1_a_recall_that_is_cancelled_over_http_stops_and_leaves_the_server_alive(tmp_path: Path, mode: Any) -> None:
    with serving.http(tmp_path, ENDLESS + serving.HTTP) as (_, port):

        def logged(word: str) -> bool:
            return word in (tmp_path / "log").read_text(encoding="utf-8")

        async def until(word: str) -> None:
            with anyio.fail_after(serving.WAIT):
                while not logged(word):
                    await anyio.sleep(0.02)

        async def talk() -> Any:
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                async with anyio.create_task_group() as calls:
                    calls.start_soon(client.call_tool, "ground_recall", SEARCH["arguments"])
                    await until("searching")
                    assert not logged("stopped")
                    calls.cancel_scope.cancel()
                await until("stopped")
                return await client.call_tool("memory_status", {})

        assert anyio.run(talk).structured_content["embedder"] == "off"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_f1_a_call_that_takes_long_reports_progress_in_both_eras(tmp_path: Path, mode: Any) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", ENDLESS + serving.STDIO],
        env=serving.environment(tmp_path),
        cwd=tmp_path,
    )
    told: list[tuple[float, str | None]] = []

    async def talk() -> None:
        heard = anyio.Event()

        async def progress(seconds: float, _total: float | None, message: str | None) -> None:
            told.append((seconds, message))
            heard.set()

        async with Client(parameters, mode=mode) as client, anyio.create_task_group() as calls:

            async def call() -> None:
                await client.call_tool("ground_recall", {"query": "ninja"}, progress_callback=progress)

            calls.start_soon(call)
            with anyio.fail_after(serving.WAIT):
                await heard.wait()
            calls.cancel_scope.cancel()

    anyio.run(talk)
    assert told[0] == (1.0, "working for 1 s")
