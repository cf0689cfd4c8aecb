"""Warm recall at 1k and 10k passages: embedding and store time apart, against the bare query embedding.

The passages are real source text; their vectors are made-up unit vectors in clusters, because making real ones
would take minutes and changes nothing about the time a search takes. Queries are embedded for real.
"""

from __future__ import annotations

import argparse
import array
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from fastembed import TextEmbedding

from bench.corpus import QUERIES, files
from bench.timing import p50, p95, table
from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.config import load
from grounded_mcp.ingest.chunks import ChunkOptions, split
from grounded_mcp.models.onnx import BUNDLED_FOLDER
from grounded_mcp.settings import settings
from grounded_mcp.stores.base import Space, Store
from grounded_mcp.values import Clean, Item, Passage, Record, Vector

SIZES = (1_000, 10_000)


def measure(args: argparse.Namespace) -> list[str]:
    rows = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            rows.append(_at(size, Path(scratch), args.queries))
    head = ("passages", "fastembed", "our embedding", "store p50", "store p95", "total p50", "total p95", "ratios")
    return [
        "### Warm hybrid recall (ms)",
        "",
        "fastembed: the bare query embedding with fastembed's own settings; our embedding: the same through the guard,",
        "on one thread. Ratios: total p50 over each of the two.",
        "",
        *table(head, rows),
    ]


def _at(size: int, scratch: Path, queries: int) -> tuple[object, ...]:
    options = settings(load(cwd=scratch, env={"GROUNDED_HOME": str(scratch / "home")}))
    memory = open_memory(options, cwd=scratch)
    memory.start()
    assert memory.wait_ready(60)
    embedder = memory.embedder
    assert embedder is not None
    with closing(open_store(options)) as store:
        fill(store, memory.project.scope, size)
        embed(store, embedder.space)
    asked = [f"{QUERIES[at % len(QUERIES)]} {at}" for at in range(queries)]
    for query in asked[:20]:
        memory.recall(query, project=memory.project.key)
    plain = TextEmbedding(
        f"grounded-mcp:{BUNDLED_FOLDER}", specific_model_path=str(BUNDLED_FOLDER), cache_dir=str(scratch)
    )
    bare, ours, db, total = [], [], [], []
    for query in asked:
        bare.append(_ms(lambda text=query: next(iter(plain.embed([text + " bare"])))))
        ours.append(_ms(lambda text=query: embedder.query(text + " guarded")))
        stats = memory.recall(query).stats
        db.append(stats.db_ms)
        total.append(stats.total_ms)
    memory.close()
    ratios = f"{p50(total) / p50(bare):.2f} / {p50(total) / p50(ours):.2f}"
    return size, p50(bare), p50(ours), p50(db), p95(db), p50(total), p95(total), ratios


def _ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def fill(store: Store, scope: str, size: int) -> None:
    """Store real text until there are ``size`` passages."""
    batch: list[Record] = []
    stored = 0
    for record in records(scope):
        batch.append(record)
        stored += len(record.passages)
        if len(batch) == 50 or stored >= size:
            store.save(batch)
            batch = []
        if stored >= size:
            break


def embed(store: Store, space: Space) -> None:
    """Made-up vectors, in clusters, for everything that has none."""
    rng = random.Random(7)
    centres = [[rng.gauss(0, 1) for _ in range(space.dimensions)] for _ in range(50)]
    while pending := store.pending(100):
        store.set_vectors(space, {each.id: _near(rng.choice(centres), rng) for each in pending})


def records(scope: str) -> Iterator[Record]:
    """Source files of the standard library, cut into passages."""
    options = ChunkOptions()
    for path in files(5_000):
        text = path.read_text(encoding="utf-8", errors="replace")
        passages = tuple(
            Passage(seq, Clean(chunk.body), chunk.heading, chunk.start_line, chunk.end_line)
            for seq, chunk in enumerate(split(text, "code", options))
        )
        item = Item(f"doc_{path.stem}_{len(text)}", "doc", scope, Clean(path.name), key=str(path), updated_at=1.0)
        yield Record(item, passages)


def _near(centre: list[float], rng: random.Random) -> Vector:
    raw = [value + rng.gauss(0, 0.7) for value in centre]
    norm = math.sqrt(sum(value * value for value in raw))
    return Vector(array.array("f", [value / norm for value in raw]).tobytes())
