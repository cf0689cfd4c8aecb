"""Cold start: spawn to ``initialize`` and to ``tools/list``, against a bare ``MCPServer`` of the same SDK; ``--help``.

Runs alternate, so that both meet the same machine. Byte code is warm (one unmeasured run each).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.timing import p50, table

BARE = """
from mcp.server import MCPServer
server = MCPServer("bare", version="1")
@server.tool()
def ground_recall(query: str) -> str:
    return query
server.run("stdio")
"""


def measure(args: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        bare = Path(scratch, "bare.py")
        bare.write_text(BARE, encoding="utf-8")
        commands = {
            "bare MCPServer": [sys.executable, str(bare)],
            "grounded-mcp": [sys.executable, "-m", "grounded_mcp", "serve"],
        }
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"GROUNDED_HOME": str(Path(scratch, "home"))}
        env["PYTHONPATH"] = str(Path(__file__).parent.parent)
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for turn in range(args.rounds + 1):
            for name, command in commands.items():
                took = _handshake(command, env, scratch)
                if turn:
                    runs[name].append(took)
        rows = [(name, *(p50([1e3 * took[at] for took in taken]) for at in (0, 1))) for name, taken in runs.items()]
        ratio = tuple(rows[1][at] / rows[0][at] for at in (1, 2))
        helps = [_help(env) for _ in range(args.rounds)]
        bare_python = [_run([sys.executable, "-c", "pass"], env) for _ in range(args.rounds)]
    return [
        "### Cold start over stdio (ms, medians)",
        "",
        *table(("server", "initialize", "tools/list"), [*rows, ("ratio", *ratio)]),
        "",
        f"`--help`: {p50(helps) * 1e3:.0f} ms, {p50(helps) / p50(bare_python):.1f} x a bare interpreter.",
    ]


def _handshake(command: list[str], env: dict[str, str], cwd: str) -> tuple[float, float]:
    """Seconds from spawn to the reply to ``initialize``, and to that of ``tools/list``."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def call(number: int, method: str, params: dict[str, object]) -> float:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == number
            return time.perf_counter() - started

        initialized = call(1, "initialize", client)
        server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        listed = call(2, "tools/list", {})
        server.stdin.close()
        server.wait(10)
    return initialized, listed


def _help(env: dict[str, str]) -> float:
    return _run([sys.executable, "-m", "grounded_mcp", "--help"], env)


def _run(command: list[str], env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
