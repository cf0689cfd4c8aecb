"""A store as lines: what it holds, of one moment, with what keeps forgotten things forgotten.

Knows nothing about where the lines go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import BinaryIO, Protocol

from grounded_mcp import __version__
from grounded_mcp.ingest.forgetting import SECRET, tombstones
from grounded_mcp.stores.base import MAX_BATCH, Store
from grounded_mcp.stores.portable import Carried, Portable
from grounded_mcp.transfer import lines, past
from grounded_mcp.values import GLOBAL_SCOPE
from grounded_mcp.when import iso

MOVED = "migration"
"""The checkpoint of a store that another is moved to: how far that got."""
DIGESTS = 1_000
"""Tombstones on one line."""


class Whole(Store, Portable, Protocol):
    """A store that can be moved."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What goes along. ``scopes``: only items of these, None: all. What is left out of a part of a store: how far
    sources were read and what was forgotten, as neither says whose it is."""

    scopes: frozenset[str] | None = None
    vectors: bool = False
    telemetry: bool = False


@dataclass(frozen=True, slots=True)
class ExportReport:
    items: int
    passages: int
    forgotten: int
    bytes: int


def scopes_of(projects: Collection[str]) -> frozenset[str]:
    """Those that an export of some projects (by key) takes: theirs, and what holds everywhere."""
    return frozenset({GLOBAL_SCOPE, *(f"project:{key}" for key in projects)})


def export(
    store: Whole, out: BinaryIO, options: ExportOptions, now: float, progress: Callable[[int, int], None] | None = None
) -> ExportReport:
    """Write everything as lines; ``progress(done, total)`` in items. Raises: StoreError, OSError."""
    told = progress or (lambda done, total: None)
    seal, count, size = sha256(), 0, 0
    items = passages = forgotten = 0
    with store.reading():
        total = sum(store.info(scopes=options.scopes).items.values())
        for row in _rows(store, options, now):
            line = lines.encode(row)
            out.write(line)
            seal.update(line)
            count, size = count + 1, size + len(line)
            forgotten += len(row.get("digests", ()))
            if row["type"] == "item":
                items, passages = items + 1, passages + len(row["passages"])
                told(items, total)
    last = lines.encode({"type": "end", "lines": count, "sha256": seal.hexdigest()})
    out.write(last)
    return ExportReport(items, passages, forgotten, size + len(last))


def _rows(store: Whole, options: ExportOptions, now: float) -> Iterator[lines.Row]:
    space = store.space() if options.vectors else None
    yield {
        "type": lines.HEADER,
        "version": lines.VERSION,
        "written_by": __version__,
        "created": iso(now),
        "space": lines.space_row(space),
        "scopes": None if options.scopes is None else sorted(options.scopes),
    }
    for project in store.projects():
        if options.scopes is None or project.scope in options.scopes:
            yield lines.project_row(project)
    for carried in all_items(store, vectors=space is not None):
        if options.scopes is None or carried.record.item.scope in options.scopes:
            yield lines.item_row(carried)
    if options.scopes is None:
        yield from _kept_out(store)
        for name, at in sorted(store.checkpoints("").items()):
            if name != MOVED:
                yield {"type": "checkpoint", "source": name, "state": at}
    if options.telemetry:
        yield from past.rows(store, options.scopes)


def all_items(store: Portable, *, vectors: bool, after: str = "") -> Iterator[Carried]:
    """Every item by id, read page by page."""
    while page := store.carry(after=after, limit=MAX_BATCH, vectors=vectors):
        yield from page
        after = page[-1].record.item.id


def _kept_out(store: Whole) -> Iterator[lines.Row]:
    """What was forgotten, as digests, with the keys they are made by: without those they would keep nothing out."""
    held = tombstones(store)
    if not held.buried:
        return
    for name, key in sorted(store.secrets().items()):
        if name.partition(":")[0] == SECRET:
            yield {"type": "key", "value": key.hex()}
    digests = iter(sorted(held.buried))
    while some := list(islice(digests, DIGESTS)):
        yield {"type": "tombstones", "digests": some}
