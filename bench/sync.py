"""Sync throughput on real source files: text alone, a second run over unchanged files, then the vectors."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from bench.corpus import copy_to
from bench.timing import table
from grounded_mcp.assemble import open_memory
from grounded_mcp.config import load
from grounded_mcp.settings import settings

FILES = 400
VECTOR_SECONDS = 20.0


def measure(_args: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch, "project")
        size = copy_to(project, FILES)
        options = settings(load(cwd=project, env={"GROUNDED_HOME": str(Path(scratch, "home"))}))
        memory = open_memory(options, cwd=project)
        first = memory.sync_documents()
        again = memory.sync_documents()
        memory.wait_ready(60)
        deadline = time.monotonic() + VECTOR_SECONDS
        vectors = memory.fill_vectors(stop=lambda: time.monotonic() > deadline)
        assert vectors is not None
        memory.close()
    rows = [
        ("first sync", f"{first.seen} files, {first.passages} passages", first.seconds, size / 1e6 / first.seconds),
        ("unchanged sync", f"{again.seen} files", again.seconds, size / 1e6 / again.seconds),
    ]
    return [
        "### Sync of standard-library source",
        "",
        *table(("what", "how much", "seconds", "MB/s"), rows),
        "",
        f"Vectors: {vectors.embedded} passages, {vectors.embedded / vectors.seconds:.0f} a second.",
    ]
