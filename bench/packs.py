"""Context packs on tasks made from the history of real repositories: is the right source in the pack, is it among the
files to read first, and does a pack say that it knows nothing where the answer lies in another repository?

Tasks: ``tasks/packs.jsonl``; each says what it was made from. Changelogs are left out of what is indexed: they hold the
tasks word for word. Absent tasks are the same ones, each asked of every repository that it is not about. Folders are
given as ``--repository NAME=FOLDER``. That of ``sessions`` holds transcripts, which become sessions of one project,
wherever they were held: the questions are about all of them. Thresholds were set with the ``dev`` half alone.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.recall import embed, fill
from bench.timing import p50, p95, table
from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.config import load
from grounded_mcp.memory import Memory
from grounded_mcp.packing import Pack
from grounded_mcp.settings import Settings, settings

TASKS = Path(__file__).parent / "tasks" / "packs.jsonl"
LEFT_OUT = ("CHANGELOG*", "CHANGES*", "changelog.*", "changes.*", "versionhistory.*", ".git", "packs.jsonl", "LOG.md")
SESSIONS = "sessions"
HALVES = ("dev", "held", "held2", "held3")
HEAD = ("half", "repository", "tasks", "in the pack", "in read_first", "empty", "absent tasks", "empty")

Task = Mapping[str, Any]


def measure(args: argparse.Namespace) -> list[str]:
    folders = {name: Path(folder) for name, _, folder in (each.partition("=") for each in args.repository)}
    tasks = [json.loads(line) for line in TASKS.read_text(encoding="utf-8").splitlines()]
    tasks = [task for task in tasks if task["repository"] in folders]
    rows: list[Sequence[object]] = []
    for name, folder in folders.items():
        with closing(indexed(name, folder, Path(args.cache))) as memory:
            rows += [(half, *_counted(name, memory, tasks, half)) for half in HALVES]
    rows.sort(key=lambda row: HALVES.index(str(row[0])))
    rows += [(half, "all", *_totals(row[2:] for row in rows if row[0] == half)) for half in HALVES]
    return ["### Context packs: the right source", "", *table(HEAD, rows), "", *_speed(args.queries)]


def _counted(name: str, memory: Memory, tasks: Sequence[Task], half: str) -> Sequence[object]:
    """One row: how many of a repository's own tasks, and of all others', have which outcome."""
    mine = [task for task in tasks if task["half"] == half]
    own = [task for task in mine if task["repository"] == name]
    absent = [task for task in mine if task["repository"] != name]
    found = [judged(memory.pack(task["task"]), task["gold"]) for task in own]
    told = [not memory.pack(task["task"]).sections for task in absent]
    return (name, len(own), *(_totals(found) if found else (0, 0, 0)), len(absent), sum(told))


def _totals(rows: Iterable[Sequence[Any]]) -> Iterator[int]:
    return (sum(column) for column in zip(*rows, strict=True))


def judged(made: Pack, gold: Sequence[str]) -> tuple[bool, bool, bool]:
    """Whether the right source is in the pack, whether it is among the files to read first, and whether it is empty."""
    items = [item.candidate.found.item for items in made.sections.values() for item in items if item.candidate.found]
    shown = {name for item in items for name in (item.key or "", item.attrs.get("session", ""))}
    first = {each.path for each in made.read_first}
    return not (shown | first).isdisjoint(gold), not first.isdisjoint(gold), not made.sections


def indexed(name: str, folder: Path, cache: Path) -> Memory:
    """A memory of the repository, indexed and embedded the first time."""
    home, project, user = (cache / name / part for part in ("home", "project", "user"))
    if not project.exists() and name == SESSIONS:
        project.mkdir(parents=True)
        _in_one_project(folder, project.resolve(), user / ".claude" / "projects" / "all")
    elif not project.exists():
        shutil.copytree(folder, project, ignore=shutil.ignore_patterns(*LEFT_OUT))
    memory = open_memory(_settings(home, project, user), cwd=project)
    memory.sync_documents()
    memory.sync_sessions()
    report = memory.fill_vectors()
    assert report is not None
    assert not report.reason, report.reason
    memory.start()
    assert memory.wait_ready(60)
    return memory


def _in_one_project(transcripts: Path, project: Path, into: Path) -> None:
    into.mkdir(parents=True)
    cwd = f'"cwd":{json.dumps(str(project))}'
    for path in sorted(transcripts.glob("*.jsonl")):
        text = path.read_text(encoding="utf-8")
        (into / path.name).write_text(re.sub(r'"cwd":\s*"[^"]*"', lambda _: cwd, text), encoding="utf-8")


def _settings(home: Path, project: Path, user: Path) -> Settings:
    env = {"GROUNDED_HOME": str(home), "HOME": str(user), "GROUNDED_EMBEDDING__QUERY_TIMEOUT_S": "30"}
    return settings(load(cwd=project, env=env))


def _speed(queries: int) -> Iterable[str]:
    """A pack against ground_recall on the same 10,000 passages."""
    from bench.corpus import QUERIES

    with tempfile.TemporaryDirectory() as scratch:
        options = _settings(Path(scratch) / "home", Path(scratch), Path(scratch))
        options = replace(options, telemetry=replace(options.telemetry, enabled=False))
        with closing(open_memory(options, cwd=Path(scratch))) as memory:
            memory.start()
            assert memory.wait_ready(60)
            assert memory.embedder is not None
            with closing(open_store(options)) as store:
                fill(store, memory.project.scope, 10_000)
                embed(store, memory.embedder.space)
            asked = [f"{QUERIES[at % len(QUERIES)]} {at}" for at in range(queries)]
            recalls, packs = [], []
            for query in asked:
                recalls.append(_ms(lambda text=query: memory.recall(text)))
                packs.append(_ms(lambda text=query: memory.pack(text)))
    rows = [
        ("ground_recall", p50(recalls), p95(recalls), 1),
        ("context_pack", p50(packs), p95(packs), p50(packs) / p50(recalls)),
    ]
    return ["### A pack at 10,000 passages (ms)", "", *table(("verb", "p50", "p95", "p50 over ground_recall's"), rows)]


def _ms(work: Any) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3
