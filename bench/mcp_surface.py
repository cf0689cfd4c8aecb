"""What the server costs a client that only has it connected: bytes of its lists, and memory while nothing is asked.

Bytes are counted on the wire, over stdio. Memory is the proportional set size (Linux) of a server that is left alone,
beside a bare ``MCPServer`` of the same SDK: after ``tools/list``, and when the model is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.start import BARE
from bench.timing import table

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
BAR = 12_000
"""F1: bytes of tools/list."""
LOADED_S = 60.0
"""How long the model may take to load."""
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """A server on stdio, spoken to one request after the other."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["result"]

    def tool(self, name: str, **arguments: object) -> Any:
        return self.call("tools/call", {"name": name, "arguments": arguments})["structuredContent"]

    def megabytes(self) -> float | None:
        """Memory that is this process's alone, with its share of what others have mapped, too."""
        try:
            told = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            return None
        found = re.search(r"^Pss:\s+(\d+) kB", told, re.MULTILINE)
        return int(found[1]) / 1_024 if found else None


def measure(_: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        bare = Path(scratch, "bare.py")
        bare.write_text(BARE, encoding="utf-8")
        with _serving([str(bare)], scratch) as server:
            alone = server.megabytes()
        with _serving(["-m", "grounded_mcp"], scratch, GROUNDED_EMBEDDING__PROVIDER="none") as server:
            lists = {method: _size(server.call(method, {})) for method in LISTS}
            tools = {tool["name"]: _size(tool) for tool in server.call("tools/list", {})["tools"]}
            server.tool("memory_status")
            lexical = server.megabytes()
        with _serving(["-m", "grounded_mcp"], scratch) as server:
            server.call("tools/list", {})
            connected = server.megabytes()
            _loaded(server)
            loaded = server.megabytes()
    sizes = [*lists.items(), *((f"of which {name}", size) for name, size in tools.items())]
    memory = (
        ("bare MCPServer, connected", alone),
        ("connected, before the store opens", connected),
        ("store open, vectors off", lexical),
        ("store open, model loaded", loaded),
    )
    return [
        f"### What a connection costs (bytes; the bar for tools/list is {BAR:,})",
        "",
        *table(("list", "bytes"), sizes),
        "",
        "### Memory of an idle server (MB)",
        "",
        *table(
            ("state", "proportional set size"), [(name, "not measured" if mb is None else mb) for name, mb in memory]
        ),
    ]


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _loaded(server: Server) -> None:
    until = time.monotonic() + LOADED_S
    while server.tool("memory_status")["embedder"] != "ready":
        assert time.monotonic() < until, "the model did not load"
        time.sleep(0.1)


@contextmanager
def _serving(args: list[str], scratch: str, **settings: str) -> Iterator[Server]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDED_")}
    env = kept | {"GROUNDED_HOME": str(Path(scratch, "home")), **settings}
    env["PYTHONPATH"] = str(Path(__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=scratch,
    ) as process:
        server = Server(process)
        server.call("initialize", CLIENT)
        assert process.stdin is not None
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        process.stdin.flush()
        yield server
        process.stdin.close()
        process.wait(10)
