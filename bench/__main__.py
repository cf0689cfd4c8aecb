"""One entry point: ``python -m bench [NAME ...]`` runs the named measurements (default: all) and prints them.

``--log`` appends the result to bench/LOG.md. Figures are medians; machines are noisy, so look at the ratios.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from bench import (
    hooks,
    imports,
    mcp_surface,
    packs,
    parity,
    project_memory,
    quality,
    recall,
    sessions,
    start,
    sync,
    team,
)

MEASUREMENTS: dict[str, Callable[[argparse.Namespace], list[str]]] = {
    "start": start.measure,
    "hooks": hooks.measure,
    "surface": mcp_surface.measure,
    "recall": recall.measure,
    "project-memory": project_memory.measure,
    "packs": packs.measure,
    "sync": sync.measure,
    "quality": quality.measure,
    "import": imports.measure,
    "sessions": sessions.measure,
    "team": team.measure,
    "parity": parity.measure,
}
NEEDS = {"packs": "repository", "quality": "data", "parity": "data", "import": "sessions", "sessions": "sessions"}
"""Measurements that run on a folder, and the option that names it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MEASUREMENTS, []], help=", ".join(MEASUREMENTS))
    parser.add_argument("--rounds", type=int, default=9, help="runs per figure of `start` (default: 9)")
    parser.add_argument(
        "--queries", type=int, default=200, help="queries per size of `recall`, or data set of `parity` (default: 200)"
    )
    parser.add_argument("--data", type=Path, help="folder of data sets, for `quality` and `parity`")
    parser.add_argument("--sessions", type=Path, help="folder of sessions and queries, for import and sessions")
    parser.add_argument("--repository", action="append", metavar="NAME=FOLDER", help="for packs; may be repeated")
    parser.add_argument("--passages", action="append", type=int, metavar="N", help="sizes of `team` (10000, 100000)")
    parser.add_argument(
        "--cache", default=f"{tempfile.gettempdir()}/grounded-packs", help="where packs keeps what it indexed"
    )
    parser.add_argument("--log", action="store_true", help="append to bench/LOG.md")
    args = parser.parse_args()
    names = args.names or [name for name in MEASUREMENTS if name not in NEEDS or getattr(args, NEEDS[name])]
    lines = [f"## {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} · {', '.join(names)}", "", _machine(), ""]
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        lines += [*MEASUREMENTS[name](args), ""]
    text = "\n".join(lines)
    print(text)
    if args.log:
        with Path(__file__).with_name("LOG.md").open("a", encoding="utf-8") as log:
            log.write("\n" + text)
    return 0


def _machine() -> str:
    parts = [f"{name} {version(name)}" for name in ("mcp", "apsw", "sqlite-vec", "fastembed", "onnxruntime")]
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {', '.join(parts)}."


sys.exit(main())
