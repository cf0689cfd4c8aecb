"""Warm get_project_memory over 10,000 learnings and 1,000 scripts, beside ground_recall over 10,000 passages.

In one store, in turn, with the same questions and the same model. Each learning relies on one of the scripts; these lie
on disk and are looked at in every answer. Texts are real, vectors are made up, as for ``recall``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from bench.corpus import QUERIES
from bench.recall import embed, fill, records
from bench.timing import p50, p95, table
from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.config import load
from grounded_mcp.memory import Memory
from grounded_mcp.settings import settings
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Clean, Evidence, Item, Kind, Passage, Record

LEARNINGS, SCRIPTS, DOCUMENTS = 10_000, 1_000, 10_000
CHARS = 240
"""Of a learning: a sentence or two."""

VERBS: Mapping[str, Callable[[Memory, str], object]] = {
    "ground_recall": lambda memory, query: memory.recall(query),
    "get_project_memory": lambda memory, query: memory.project_memory(query=query, intent="inspect"),
    "the same, lexical": lambda memory, query: memory.project_memory(query=query, intent="inspect", mode="lexical"),
    "without a query": lambda memory, _: memory.project_memory(),
}


def measure(args: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        rows = list(_rows(Path(scratch), args.queries))
    return [
        f"### Warm project memory: {LEARNINGS:,} learnings, {SCRIPTS:,} scripts, {DOCUMENTS:,} passages (ms)",
        "",
        *table(("verb", "p50", "p95", "p50 over ground_recall's"), rows),
    ]


def _rows(scratch: Path, queries: int) -> Iterator[Sequence[object]]:
    options = settings(load(cwd=scratch, env={"GROUNDED_HOME": str(scratch / "home")}))
    with closing(open_memory(options, cwd=scratch)) as memory, closing(open_store(options)) as store:
        memory.start()
        assert memory.wait_ready(60)
        assert memory.embedder is not None
        _stock(store, memory.project.scope, scratch)
        embed(store, memory.embedder.space)
        asked = [f"{QUERIES[at % len(QUERIES)]} {at}" for at in range(queries)]
        spent: dict[str, list[float]] = {name: [] for name in VERBS}
        for at, query in enumerate([*asked[:20], *asked]):
            for name, verb in VERBS.items():
                started = time.perf_counter()
                verb(memory, query)
                if at >= 20:
                    spent[name].append((time.perf_counter() - started) * 1e3)
    for name, times in spent.items():
        yield name, p50(times), p95(times), p50(times) / p50(spent["ground_recall"])


def _stock(store: Store, scope: str, root: Path) -> None:
    fill(store, scope, DOCUMENTS)
    texts = (passage.body[:CHARS] for record in records(scope) for passage in record.passages)
    known = _known(scope, root, islice(texts, LEARNINGS))
    while batch := list(islice(known, 100)):
        store.save(batch)


def _known(scope: str, root: Path, texts: Iterator[str]) -> Iterator[Record]:
    """Scripts that worked one to three times, and learnings that rely on them."""
    now = time.time()
    held = []
    for number in range(SCRIPTS):
        path, text = f"tools/script_{number}.sh", f"echo {number}\n"
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        held.append({"scripts": json.dumps({path: hashlib.sha256(text.encode()).hexdigest()})})
        yield _record("script", f"scr_{number}", f"./{path}", number, held[number], scope, now)
    for number, text in enumerate(texts):
        yield _record("learning", f"lea_{number}", text, number, held[number % SCRIPTS], scope, now)


def _record(kind: Kind, id: str, text: str, number: int, attrs: Mapping[str, str], scope: str, now: float) -> Record:
    at = now - number % 300 * 86_400.0
    item = Item(id, kind, scope, Clean(text), key=id, created_at=at, updated_at=at, attrs=attrs)
    seen = [Evidence("ses_1", n, n != 3, "verified outcome", at, Clean("")) for n in range(number % 3 + 1)]
    return Record(item, (Passage(0, Clean(text)),), tuple(seen))
