"""Importing real sessions: MB and turns a second, peak memory, and a second run, beside merely parsing the JSON.

``--sessions`` names a folder with ``sessions/*.jsonl`` (Claude Code's records). Each run is the command as a process,
without vectors; peak memory is the operating system's figure for that process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.timing import table

_MEASURED = (
    "import resource, sys; from grounded_mcp.faces.cli import main; code = main(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr); sys.exit(code)"
)
_ARGUMENTS = ("sync", "--sessions", "--all-projects", "--no-vectors", "--json")


def measure(args: argparse.Namespace) -> list[str]:
    files = sorted((args.sessions / "sessions").glob("*.jsonl"))
    size = sum(path.stat().st_size for path in files) / 1e6
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        folder = home / ".claude" / "projects" / "-measured"
        folder.mkdir(parents=True)
        for path in files:
            shutil.copy2(path, folder)
        parsed, _ = _timed(lambda: _parse(files))
        first, (report, peak) = _timed(lambda: _import(home))
        again, (unchanged, _) = _timed(lambda: _import(home))
    found, rerun = report["agents"]["claude-code"], unchanged["agents"]["claude-code"]
    rows = [
        ("json.loads of every line", parsed, size / parsed, found["records"] / parsed),
        ("import", first, size / first, found["records"] / first),
        ("import, unchanged", again, size / again, rerun["records"] / again),
    ]
    told = (
        f"{len(files)} transcripts, {size:.0f} MB, {found['records']:,} records; {found['sessions']} sessions, "
        f"{found['exchanges']:,} exchanges, {found['passages']:,} passages, {found['episodes']:,} episodes. "
        f"Peak memory {peak} MB; {rerun['unchanged']} unchanged at the second run."
    )
    return ["### Import of sessions", "", told, "", *table(("what", "seconds", "MB/s", "records/s"), rows)]


def _parse(files: list[Path]) -> None:
    for path in files:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)


def _import(home: Path) -> tuple[Any, int]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDED_")}
    ours = {"HOME": str(home), "USERPROFILE": str(home), "GROUNDED_HOME": str(home / "data")}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *_ARGUMENTS],
        cwd=home,
        env={**kept, **ours, "GROUNDED_EMBEDDING__PROVIDER": "none", "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return json.loads(done.stdout)["sessions"], int(done.stderr.split()[-1])


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
