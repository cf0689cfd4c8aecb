"""A real server process to talk to, by raw lines or by its address. Every wait is bounded."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grounded_mcp

WAIT = 30.0
"""Seconds that anything may take on a busy machine before a test gives up."""

SERVE = "from grounded_mcp.config import load; from grounded_mcp.faces.server import serve; "
STDIO = SERVE + "serve('stdio', load=load)"
HTTP = SERVE + "serve('http', load=load)"
BLOCKED = "import time; from grounded_mcp.memory import Memory; Memory.status = lambda self: time.sleep(300); " + STDIO
"""A server whose memory_status blocks in C code for five minutes."""

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def environment(home: Path, **settings: object) -> dict[str, str]:
    """A server's environment: its own data directory, no vectors, and ``section__key`` settings."""
    named = {f"GROUNDED_{name.upper()}": str(value) for name, value in settings.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GROUNDED_", "CLAUDE_"))}
    kept["PYTHONPATH"] = str(Path(grounded_mcp.__file__).parent.parent)  # installed or not
    return {**kept, "GROUNDED_HOME": str(home), "GROUNDED_EMBEDDING__PROVIDER": "none", **named}


class Process:
    """A server on stdio, spoken to in raw lines."""

    def __init__(self, program: str, env: dict[str, str], cwd: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *options, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
        )
        self.lines: list[bytes] = []
        self.stderr = b""
        self._replies: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._out, self._err)]
        for thread in self._threads:
            thread.start()

    def _out(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._replies.put(json.loads(line))
        self._replies.put(None)

    def _err(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line

    def send(self, *lines: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def reply(self) -> dict[str, Any]:
        """The next line from the server."""
        reply = self._replies.get(timeout=WAIT)
        assert reply is not None, self.stderr.decode()
        return reply

    def request(self, number: object, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request; its reply is the next line."""
        self.send({"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})})
        return self.reply()

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = self.request(7, "tools/call", {"name": tool, "arguments": arguments})["result"]
        assert isinstance(result, dict)
        return result

    def initialize(self) -> Process:
        assert "result" in self.request(1, "initialize", INITIALIZE)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def end(self) -> None:
        """Close every pipe; kill what is still there."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT)
        for thread in self._threads:
            thread.join(WAIT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


@contextmanager
def stdio(home: Path, program: str = STDIO, *options: str, **settings: object) -> Iterator[Process]:
    """A running server, initialised."""
    served = Process(program, environment(home, **settings), home, *options)
    try:
        yield served.initialize()
    finally:
        served.end()


@contextmanager
def http(home: Path, program: str = HTTP, **settings: object) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A running HTTP server on a free loopback port, and that port. What it logs is in ``home/log``."""
    log = home / "log"
    with log.open("wb") as stderr:
        env = environment(home, server__port=0, **settings)
        process = subprocess.Popen([sys.executable, "-c", program], stderr=stderr, env=env, cwd=home)
    try:
        yield process, _announced_port(process, log)
    finally:
        process.kill()
        process.wait(WAIT)


def _announced_port(process: subprocess.Popen[bytes], log: Path) -> int:
    announced = threading.Event()
    for _ in range(int(WAIT / 0.05)):
        if found := re.search(rb"serving http://[^ ]*:(\d+)/mcp", log.read_bytes()):
            return int(found[1])
        if process.poll() is not None:
            break
        announced.wait(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))
