"""What store tests say: short ways to make records and vectors, to ask, and to have other processes do things."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grounded_mcp.stores.base import Store
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Filter, Item, Kind, Passage, PassageId, Record, Space, Vector

ANALYZER = Analyzer()
SPACE = Space("model-a", 4)
KINDS: tuple[Kind, ...] = ("fact", "session", "doc", "learning", "episode", "digest", "script")


def fact(item_id: str, text: str, scope: str = "global", **fields: Any) -> Record:
    """A fact of one passage without a title, kept whole."""
    item = Item(item_id, "fact", scope, Clean(""), body=Clean(text), **fields)
    return Record(item, (Passage(0, Clean(text)),))


def doc(path: str, *bodies: str, scope: str = "project:a", heading: str = "", **fields: Any) -> Record:
    """A document whose text is its passages."""
    item = Item(f"doc_{path}", "doc", scope, Clean(path), key=path, **fields)
    return Record(item, tuple(Passage(seq, Clean(body), heading) for seq, body in enumerate(bodies)))


def where(
    *scopes: str, kinds: Sequence[Kind] = KINDS, since: float | None = None, until: float | None = None
) -> Filter:
    """A filter; no scope named means every scope."""
    return Filter(frozenset(kinds), frozenset(scopes) or None, since, until)


EVERYTHING = where()


def found(store: Store, query: str, filter: Filter = EVERYTHING, k: int = 10) -> list[str]:
    """The items that keyword search finds, best first."""
    hits = store.lexical(ANALYZER.query(query), filter, k)
    return owners(store, [hit.passage for hit in hits])


def near(store: Store, vector: Vector, filter: Filter = EVERYTHING, k: int = 10) -> list[str]:
    """The items that vector search finds, best first."""
    return owners(store, [hit.passage for hit in store.nearest(vector, filter, k)])


def owners(store: Store, ids: Sequence[PassageId]) -> list[str]:
    passages = store.fetch(ids)
    return [passages[each].item.id for each in ids]


def unit(*components: float) -> Vector:
    """The unit vector in this direction."""
    norm = math.sqrt(sum(x * x for x in components))
    return Vector(struct.pack(f"<{len(components)}f", *(x / norm for x in components)))


def random_unit(source: random.Random, dimensions: int) -> Vector:
    return unit(*(source.gauss(0, 1) for _ in range(dimensions)))


def ids_of(store: Store, item_id: str) -> list[PassageId]:
    """The ids of an item's passages that wait for a vector, in order."""
    waiting = [passage.id for passage in store.pending(10_000)]
    stored = store.fetch(waiting)
    return [each for each in waiting if stored[each].item.id == item_id]


def embed(store: Store, item_id: str, *vectors: Vector, space: Space = SPACE) -> list[PassageId]:
    """Give an item's waiting passages these vectors; returns the passages' ids."""
    ids = ids_of(store, item_id)
    assert store.set_vectors(space, dict(zip(ids, vectors, strict=True))) == len(vectors)
    return ids


def held(store: Any) -> bytes:
    """Every byte of a SQLite store's files; every row of a Postgres store's tables: what its files are is not ours."""
    if store.path:
        return b"".join(path.read_bytes() for path in sorted(store.path.parent.iterdir()))
    return store._database.read(_rows)


def _rows(db: Any) -> bytes:
    named = "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    tables = [name for (name,) in db.execute(named)]
    dump = "SELECT t::text FROM {} AS t"
    return "\n".join(row for name in tables for (row,) in db.execute(dump.format(name))).encode()


class Worker:
    """Another process that does what it is told, one command per line; ``worker.py`` lists the commands."""

    def __init__(self) -> None:
        here = Path(__file__).parent
        self.process = subprocess.Popen(
            [sys.executable, str(here / "worker.py")],
            env={**os.environ, "PYTHONPATH": str(here.parent.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def tell(self, command: str, **arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([command, arguments]) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next answer; an ended process has none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def ask(self, command: str, **arguments: Any) -> Any:
        self.tell(command, **arguments)
        return self.hear()

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
