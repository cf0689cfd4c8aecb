"""What a hook costs a session: its wall time at 10,000 items against a bare interpreter's, and what it imports.

Runs alternate, so that all meet the same machine. Byte code is warm, and the project of the folder is known, as from
the second event of a project on; ``first`` is the event before that, which asks git and reads the configuration.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.timing import p50, p95, table
from grounded_mcp.project import identify
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Evidence, Item, Kind, Passage, Record

ITEMS = 10_000
BAR = 5.0
KINDS: tuple[Kind, ...] = ("fact", "doc", "session", "learning", "script")
HEAVY = ("mcp", "mcp_types", "pydantic", "numpy", "fastembed", "onnxruntime", "anyio", "starlette")
CLEAR, NAMING = "why is the second build so slow", "KB-30 again: see src/worker/mod_40.py:12 and KB-7000"

Run = Callable[[int], tuple[list[str], bytes]]


def measure(args: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        home, folder = Path(scratch, "home"), Path(scratch, "project")
        folder.mkdir()
        fill(home, folder, ITEMS)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GROUNDED_", "PYTHON"))}
        env |= {"GROUNDED_HOME": str(home), "PYTHONPATH": str(Path(__file__).parent.parent)}
        first = _timed(_hook(folder, "SessionStart", source="startup")(0), env, folder)
        runs: dict[str, Run] = {
            "bare interpreter": lambda _: ([sys.executable, "-c", "pass"], b""),
            "brief (session start)": _hook(folder, "SessionStart", source="startup"),
            "prompt that names nothing": _hook(folder, "UserPromptSubmit", prompt=CLEAR),
            "prompt that names three": _hook(folder, "UserPromptSubmit", prompt=NAMING),
            "end of a turn": _hook(folder, "Stop", transcript_path=str(folder / "s.jsonl")),
            "`grounded-mcp brief`": lambda _: ([sys.executable, "-m", "grounded_mcp", "brief"], b""),
        }
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(1, 3 * args.rounds + 2):
            for name, run in runs.items():
                took = _timed(run(turn), env, folder)
                if turn > 1:
                    taken[name].append(took)
        loaded = _loaded(env, folder)
    bare = p50(taken["bare interpreter"])
    rows = [(name, 1e3 * p50(took), 1e3 * p95(took), p50(took) / bare) for name, took in taken.items()]
    told = "none" if not loaded else ", ".join(loaded)
    return [
        f"### Hooks at {ITEMS:,} items (ms; the bar is {BAR:.0f} x a bare interpreter)",
        "",
        *table(("event", "p50", "p95", "x bare"), rows),
        "",
        f"The first event of a project: {1e3 * first:.0f} ms. Heavy libraries that a hook imports: {told}.",
    ]


def fill(home: Path, folder: Path, items: int) -> None:
    """A store of facts, documents, sessions, learnings and scripts in equal parts, each with names of its own."""
    project, now = identify(folder), time.time()
    store = SqliteStore(home / "memory.db", Analyzer())
    store.register(project, now)
    records = [_record(number, project.scope, now) for number in range(items)]
    for start in range(0, items, 100):
        store.save(records[start : start + 100])
    store.close()


def _record(number: int, scope: str, now: float) -> Record:
    kind, at = KINDS[number % len(KINDS)], now - 600.0 * number
    text = Clean(f"The cache of service-{number % 97} is kept by src/worker/mod_{number}.py since KB-{number}.")
    fact = kind == "fact"
    item = Item(
        id=f"{kind}_{number:06x}",
        kind=kind,
        scope=scope,
        title=text,
        body=text if fact else None,
        origin="stated" if fact else "derived",
        importance=(number % 100) / 100 if fact else None,
        pinned=number % 1_000 == 0,
        created_at=at,
        updated_at=at,
        content_hash=str(number),
        attrs={"scripts": json.dumps({f"mod_{number}.py": ""})} if kind == "script" else {},
    )
    proof = (Evidence(f"stated:{number}", 0, True, "verified outcome", at, Clean("")),) if kind == "script" else ()
    return Record(item, (Passage(0, text),), proof)


def _hook(folder: Path, event: str, **sent: str) -> Run:
    """A different session each time, so that nothing is left out as known."""

    def run(turn: int) -> tuple[list[str], bytes]:
        payload = {"session_id": f"{event}-{turn}", "cwd": str(folder), "hook_event_name": event, **sent}
        command = [sys.executable, "-m", "grounded_mcp", "hook", event, "--client", "claude-code"]
        return command, json.dumps(payload).encode()

    return run


def _timed(run: tuple[list[str], bytes], env: dict[str, str], folder: Path) -> float:
    command, sent = run
    started = time.perf_counter()
    subprocess.run(command, input=sent, env=env, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _loaded(env: dict[str, str], folder: Path) -> list[str]:
    """Which heavy libraries are imported by a start and by a prompt, as ``-X importtime`` tells."""
    found = set()
    for run in (_hook(folder, "SessionStart"), _hook(folder, "UserPromptSubmit", prompt=NAMING)):
        command, sent = run(-1)
        command = [command[0], "-X", "importtime", *command[1:]]
        done = subprocess.run(command, input=sent, env=env, cwd=folder, check=True, capture_output=True)
        found |= {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.decode().splitlines()}
    return sorted(found & set(HEAVY))
