"""The stdio transport and the life of its process, seen from the other end of the pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import serving
from mcp import Client, StdioServerParameters

from grounded_mcp.faces.wire import Oversized, Wire, find_id, lines

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and pipes")
LIMIT = 100_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.Process]:
    with serving.stdio(tmp_path_factory.mktemp("home"), server__max_line_bytes=LIMIT) as process:
        yield process


def error(reply: dict[str, Any]) -> tuple[Any, int]:
    return reply["id"], reply["error"]["code"]


# --- messages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_client_remembers_recalls_and_opens(tmp_path: Path, mode: Any) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-c", serving.STDIO], env=serving.environment(tmp_path), cwd=tmp_path
    )

    async def talk() -> None:
        with anyio.fail_after(serving.WAIT):
            async with Client(parameters, mode=mode) as client:
                stored = await client.call_tool("remember_fact", {"text": "Builds run with ninja."})
                found = await client.call_tool("ground_recall", {"query": "ninja"})
                pointer = found.structured_content["data"][0]["open"]
                opened = await client.call_tool("open_memory", {"id": pointer})
        assert stored.structured_content["outcome"] == "stored"
        assert found.structured_content["data"][0]["id"] == stored.structured_content["id"]
        assert "Builds run with ninja." in opened.structured_content["text"]

    anyio.run(talk)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"not json", (None, -32700)),
        (b'{"jsonrpc":"2.0","id":41,"method":"ping"', (41, -32700)),
        (b'{"jsonrpc":"2.0","id":"a-b","method":"tools/call","params":{"name":"x\x01"}}', ("a-b", -32700)),
        (b'{"method":"ping","params":{"id":5},,"jsonrpc":"2.0","id":42}', (42, -32700)),
        (b'{"method":"ping","params":{"arguments":{"id":5}', (None, -32700)),
        (b"[" * 50_000, (None, -32700)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', (None, -32600)),
        (b"[]", (None, -32600)),
        (b"17", (None, -32600)),
        (b'"text"', (None, -32600)),
        (b"{}", (None, -32600)),
        (b'{"jsonrpc":"2.0","id":43}', (43, -32600)),
        (b'{"jsonrpc":"1.0","id":44,"method":"ping"}', (44, -32600)),
        (b'{"jsonrpc":"2.0","id":45,"method":7}', (45, -32600)),
        (b'{"jsonrpc":"2.0","id":46,"method":"ping","params":[1]}', (46, -32600)),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', (None, -32600)),
    ],
)
def test_an_unreadable_line_is_answered_with_its_id_where_it_has_one(
    server: serving.Process, line: bytes, answer: tuple[Any, int]
) -> None:
    server.send(line)
    assert error(server.reply()) == answer
    assert server.request(99, "ping") == {"jsonrpc": "2.0", "id": 99, "result": {}}


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b'{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"x":"', b'"}}'),
        (b'{"method":"tools/call","params":{"x":"', b'"},"jsonrpc":"2.0","id":51}'),
        (b'{"method":"tools/call","params":{"x":"', b'"},"id":51,"jsonrpc":"2.0"}'),
    ],
)
def test_case_41_a_line_over_the_limit_is_refused_by_its_id_and_the_next_one_is_served(
    server: serving.Process, head: bytes, tail: bytes
) -> None:
    server.send(head + b"a" * (LIMIT + 1) + tail)
    assert error(server.reply()) == (51, -32600)
    assert server.request(99, "ping")["result"] == {}


def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_no_messages(server: serving.Process) -> None:
    server.send(b"", b"   ", b"\r", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":5,"method":"ping"}\r')
    assert server.reply()["id"] == 5


def test_case_13_lone_surrogates_in_arguments_are_stored_as_u_fffd(server: serving.Process) -> None:
    server.send(
        b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":'
        rb'{"name":"remember_fact","arguments":{"text":"half a pair \ud83d quokka"}}}'
    )
    assert server.reply()["result"]["structuredContent"]["outcome"] == "stored"
    assert "half a pair \ufffd quokka" in server.call("ground_recall", query="quokka")["content"][0]["text"]


def test_case_13_a_lone_surrogate_in_a_tool_name_or_method_gets_a_reply(server: serving.Process) -> None:
    server.send(rb'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"\udc00"}}')
    assert server.reply()["result"]["isError"] is True
    server.send(rb'{"jsonrpc":"2.0","id":"\udc00","method":"no\ud800such"}')
    assert error(server.reply()) == ("\ufffd", -32601)


def test_case_42_numbers_that_json_has_no_word_for_are_told_by_the_argument(server: serving.Process) -> None:
    server.send(
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":'
        b'{"name":"ground_recall","arguments":{"query":"x","minScore":NaN}}}'
    )
    assert server.reply()["result"]["content"][0]["text"].startswith("minScore: ")


def test_requests_at_the_end_of_input_are_answered_before_the_process_goes(tmp_path: Path) -> None:
    with serving.stdio(tmp_path) as process:
        assert process.process.stdin is not None
        process.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        process.process.stdin.write(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"memory_status"}}')
        process.process.stdin.close()
        assert {process.reply()["id"], process.reply()["id"]} == {2, 3}
        assert process.process.wait(serving.WAIT) == 0


# --- stdout belongs to the wire ---------------------------------------------------------------------------

NOISY = (
    "import os, sys, warnings; from grounded_mcp.faces.wire import claim; claim(); print('early'); "
    "from grounded_mcp.memory import Memory; status = Memory.status\n"
    "def noisy(self):\n"
    "    print('printed'); os.write(1, b'written\\n'); os.system('echo from a child'); warnings.warn('warned')\n"
    "    return status(self)\n"
    "Memory.status = noisy\n" + serving.STDIO
)


def test_case_36_t9_every_line_on_stdout_is_a_message_whoever_prints(tmp_path: Path) -> None:
    with serving.stdio(tmp_path, NOISY, "-W", "default", server__log_level="debug") as process:
        for _ in range(5):
            assert process.call("memory_status")["isError"] is False
        assert process.process.stdin is not None
        process.process.stdin.close()
        assert process.process.wait(serving.WAIT) == 0
    assert len(process.lines) == 6
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in process.lines)
    for noise in (b"early", b"printed", b"written", b"from a child", b"warned"):
        assert noise in process.stderr


def test_t6_connecting_and_listing_import_no_model_no_database_and_no_rendering(tmp_path: Path) -> None:
    program = (
        "import sys, anyio\n"
        "from mcp import Client\n"
        "from grounded_mcp.faces.lifetime import Opening\n"
        "from grounded_mcp.faces.options import ServerOptions\n"
        "from grounded_mcp.faces.protocol import build\n"
        "def refuse(): raise AssertionError('opened')\n"
        "opening = Opening(refuse)\n"
        "async def talk():\n"
        "    async with Client(build(opening, ServerOptions(), lambda: None), mode='legacy') as client:\n"
        "        print([tool.name for tool in (await client.list_tools()).tools])\n"
        "anyio.run(talk); opening.close()\n"
        "heavy = {'numpy', 'onnxruntime', 'fastembed', 'apsw', 'sqlite_vec', 're2', 'grounded_mcp.render'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    env = serving.environment(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=env
    )
    names, heavy = ran.stdout.splitlines()
    reading = ["ground_recall", "get_project_memory", "context_pack"]
    assert names == str([*reading, "remember_fact", "record_learning", "forget_memory", "open_memory", "memory_status"])
    assert heavy == "[]"


# --- the end ----------------------------------------------------------------------------------------------


def close_stdin(process: serving.Process) -> None:
    assert process.process.stdin is not None
    process.process.stdin.close()


ENDS = [
    pytest.param(close_stdin, 0, id="stdin-closed"),
    pytest.param(lambda process: process.process.send_signal(signal.SIGTERM), 0, id="SIGTERM", marks=POSIX),
    pytest.param(lambda process: process.process.send_signal(signal.SIGINT), 130, id="SIGINT", marks=POSIX),
]


@pytest.mark.parametrize(("leave", "code"), ENDS)
def test_case_34_t11_an_idle_server_ends_at_once(tmp_path: Path, leave: Any, code: int) -> None:
    with serving.stdio(tmp_path) as process:
        process.call("memory_status")
        left = time.monotonic()
        leave(process)
        assert process.process.wait(serving.WAIT) == code
        assert time.monotonic() - left < 5
    assert [path.name for path in tmp_path.rglob("*") if path.name.endswith(("-wal", "-shm", ".lock", ".tmp"))] == []


@pytest.mark.parametrize(("leave", "code"), ENDS)
def test_case_34_t11_a_server_whose_tool_blocks_in_c_code_ends_within_5_seconds(
    tmp_path: Path, leave: Any, code: int
) -> None:
    with serving.stdio(tmp_path, serving.BLOCKED, server__grace_seconds=1.0) as process:
        blocking = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "memory_status"}}
        process.send(*[{**blocking, "id": number} for number in range(100, 145)])
        assert process.request(3, "ping")["id"] == 3  # more blocked tools than there are worker threads
        left = time.monotonic()
        leave(process)
        assert process.process.wait(serving.WAIT) == code
        assert time.monotonic() - left < 5


@POSIX
def test_case_34_a_server_whose_stdout_is_closed_ends_within_5_seconds(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", serving.STDIO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=serving.environment(tmp_path),
        cwd=tmp_path,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        left = time.monotonic()
        assert process.wait(serving.WAIT) == 0
        assert time.monotonic() - left < 5
    finally:
        process.kill()
        process.stdin.close()


ORPHAN = r"""
import os, subprocess, sys
reading, writing = os.pipe()
server = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=reading, stdout=subprocess.PIPE)
os.write(writing, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
server.stdout.readline()
held = [writing, server.stdout.fileno()]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=held, **quiet)
os._exit(0)
"""
"""Starts a server and a sibling that holds both its pipes and lives until its own stdin ends; then dies."""


@POSIX
def test_case_34_a_server_ends_when_its_parent_died_and_a_sibling_holds_its_pipes(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command, env = [sys.executable, "-c", ORPHAN, serving.STDIO], serving.environment(tmp_path)
    with subprocess.Popen(command, stdin=reading, stderr=subprocess.PIPE, env=env, cwd=tmp_path) as parent:
        try:
            assert parent.wait(serving.WAIT) == 0
            # Only the server still has the pipe that is its stderr: it ends when the server does.
            _, log = parent.communicate(timeout=10)
        finally:
            os.close(writing)
            os.close(reading)
    assert b"parent process ended" in log


# --- the wire's own functions -----------------------------------------------------------------------------


def read(data: bytes, limit: int) -> list[bytes | Oversized]:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    try:
        return list(lines(Wire(reading, -1), limit))
    finally:
        os.close(reading)


def test_lines_are_split_whole_and_the_last_one_needs_no_newline() -> None:
    assert read(b"a\n\n b \r\n\xff\nlast", 10) == [b"a", b"b", b"\xff", b"last"]


def test_a_line_at_the_limit_is_kept_and_one_over_it_leaves_both_its_ends() -> None:
    assert read(b"x" * 10 + b"\n", 10) == [b"x" * 10]
    assert read(b"y" * 11 + b"\nz", 10) == [Oversized(11, b"y" * 11, b""), b"z"]
    long = b"h" * 1_024 + b"m" * 5_000 + b"t" * 1_024
    assert read(long + b"\nz", 5_000) == [Oversized(7_048, b"h" * 1_024, b"t" * 1_024), b"z"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":', b"1"),
        (b' { "id" : "x\\"y" , "jsonrpc"', b'"x\\"y"'),
        (b'{"method":"m","id":-3,', b"-3"),
        (b'{"params":{"id":1,', None),
        (b'{"id":1.5,', None),
        (b'"id":1,', None),
    ],
)
def test_an_id_is_found_only_where_it_belongs_to_the_message(line: bytes, found: bytes | None) -> None:
    assert find_id(line, line) == found


def test_case_36_settings_that_cannot_be_used_are_told_by_every_tool_until_they_are_mended(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[recall]\nlimits = 3\n", encoding="utf-8")
    with serving.stdio(tmp_path) as server:
        server.initialize()
        refused = server.call("memory_status")
        assert refused["isError"]
        assert "Did you mean recall.limit?" in refused["content"][0]["text"]
        (tmp_path / "config.toml").write_text("[recall]\nlimit = 3\n", encoding="utf-8")
        assert not server.call("memory_status").get("isError")


def test_case_37_a_store_that_was_deleted_and_made_again_is_opened_by_the_next_call(tmp_path: Path) -> None:
    with serving.stdio(tmp_path) as server:
        server.initialize()
        assert not server.call("remember_fact", text="The pier is closed").get("isError")
        for file in tmp_path.glob("memory.db*"):
            file.unlink()
        assert server.call("ground_recall", query="pier")["isError"]
        again = server.call("ground_recall", query="pier")
        assert not again.get("isError")
        assert again["structuredContent"]["meta"]["empty"] is True
