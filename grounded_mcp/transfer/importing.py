"""Lines into a store: all of a file is read and checked before any of it is stored.

Its texts go through the front door's redaction like every other text, and what was forgotten here stays forgotten.
Importing again, or going on after an interruption, changes nothing that is there already. Knows nothing about paths.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from typing import BinaryIO, Final

from grounded_mcp.errors import InputError, NotFound, RedactionError, StoreError
from grounded_mcp.events import Event
from grounded_mcp.ingest.forgetting import KEYS, SECRET, Tombstones, tombstones
from grounded_mcp.ingest.redact import Redactor, clean_project
from grounded_mcp.ingest.rescan import RecordCleaner
from grounded_mcp.stores.base import MAX_BATCH
from grounded_mcp.stores.portable import Carried
from grounded_mcp.stores.rules import unpack_vector
from grounded_mcp.transfer import lines, past
from grounded_mcp.transfer.exporting import Whole
from grounded_mcp.values import Item, Project, SaveReport, Space

MAX_LINE: Final = 256 * 1024 * 1024
"""Bytes of one line, an item with all its passages and vectors: a longer one is no export."""


@dataclass(slots=True)
class ImportReport:
    """Items by what became of them. ``forgotten``: deleted here, and so left out. ``older``: another version is newer
    here. ``unchecked``: could not be checked for secrets, and so were not stored."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    forgotten: int = 0
    older: int = 0
    unchecked: int = 0
    pending: int = 0
    redactions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a whole, sound file holds."""

    space: Space | None
    counts: Mapping[str, int]


def check(file: BinaryIO) -> Checked:
    """Read all of a file. Raises: InputError naming the line, and what is wrong with it."""
    counts: Counter[str] = Counter()
    space: Space | None = None
    for number, (kind, row) in enumerate(_sealed(file), 1):
        try:
            if number == 1:
                space = lines.read_space(row)
            elif kind in _READERS:
                _READERS[kind](row, space)
            else:
                raise InputError("type", f"{kind[:40]!r} is none of this version.", "Update grounded-memory-mcp.")
        except (InputError, StoreError) as error:
            raise InputError("file", f"line {number}: {error.message}", error.remedy) from error
        counts[kind] += 1
    return Checked(space, counts)


def _item(row: lines.Row, space: Space | None) -> None:
    for vector in lines.read_item(row, space).vectors.values():
        if vector is not None and space is not None:
            unpack_vector(vector, space.dimensions)


_READERS: Mapping[str, Callable[[lines.Row, Space | None], object]] = {
    "item": _item,
    "project": lambda row, _: lines.read_project(row),
    "key": lambda row, _: _key(row),
    "tombstones": lambda row, _: lines.texts(row, "digests"),
    "checkpoint": lambda row, _: (lines.text(row, "source"), lines.text(row, "state", empty=True)),
    "session": lambda row, _: list(past.events(row)),
    "recall": lambda row, _: list(past.events(row)),
}


def _sealed(file: BinaryIO) -> Iterator[tuple[str, lines.Row]]:
    """Every row but the last, which has to count and seal the others. Raises: InputError."""
    seal, count = sha256(), 0
    while line := file.readline(MAX_LINE + 1):
        kind, row = _parsed(line, count + 1)
        if count == 0:
            _check_header(kind, row)
        if kind == "end":
            if row.get("lines") != count or row.get("sha256") != seal.hexdigest() or file.read(1):
                break
            return
        yield kind, row
        seal.update(line)
        count += 1
    raise InputError("file", "it is cut off, or was changed after it was written.", "Export again.")


def _parsed(line: bytes, number: int) -> tuple[str, lines.Row]:
    try:
        row = json.loads(line) if len(line) <= MAX_LINE else None
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("type"), str):
        raise InputError("file", f"line {number} is no JSON object with a type.", "Name a file from an export.")
    return row["type"], row


def _check_header(kind: str, row: lines.Row) -> None:
    if kind != lines.HEADER:
        raise InputError("file", "it is no export of grounded-mcp.", "Name a file that `grounded-mcp export` wrote.")
    if not 1 <= lines.whole(row, "version") <= lines.VERSION:
        raise InputError("file", f"its version {row['version']} is newer.", "Update grounded-memory-mcp.")


def _key(row: lines.Row) -> bytes:
    try:
        key = bytes.fromhex(lines.text(row, "value", 64))
    except ValueError:
        key = b""
    if len(key) != 32:
        raise InputError("value", "it is no key of 32 bytes.", "Export again.")
    return key


# --- storing ----------------------------------------------------------------------------------------------


def bring_in(
    store: Whole,
    file: BinaryIO,
    checked: Checked,
    redactor: Redactor,
    now: float,
    progress: Callable[[int, int], None] | None = None,
    *,
    forgotten: bool = False,
) -> ImportReport:
    """Store what ``check`` has read from the same file; ``forgotten``: what was deleted here, too.

    Raises: StoreError: what was stored until then stays, and importing again goes on.
    """
    run = _Import(store, redactor, checked, now, forgotten=forgotten)
    told, total = progress or (lambda done, total: None), checked.counts.get("item", 0)
    for number, (kind, row) in enumerate(_sealed(file), 1):
        if number > 1:
            run.take(kind, row)
            told(run.seen, total)
    run.finish()
    return run.report


class _Import:
    """One run: what waits for its transaction, and the counts. Items come before what keeps others out."""

    def __init__(self, store: Whole, redactor: Redactor, checked: Checked, now: float, *, forgotten: bool) -> None:
        self.report = ImportReport()
        self.seen = 0
        self._store = store
        self._cleaner = RecordCleaner(redactor)
        self._redactor = redactor
        self._space = checked.space
        self._now = now
        self._stones: Tombstones | None = None if forgotten else tombstones(store)
        self._items: list[Carried] = []
        self._events: list[Event] = []
        self._digests: list[str] = []
        self._checkpoints: dict[str, str] = {}

    def take(self, kind: str, row: lines.Row) -> None:
        if kind == "item":
            self.seen += 1
            self._add(lines.read_item(row, self._space))
        elif kind == "project":
            self._register(clean_project(lines.read_project(row), self._redactor))
        elif kind == "key":
            self._take_key(_key(row))
        elif kind == "tombstones":
            self._digests += lines.texts(row, "digests")
        elif kind == "checkpoint":
            self._checkpoints[lines.text(row, "source")] = self._redactor.clean(str(row["state"])).text
        else:
            self._events += past.events(row)

    def finish(self) -> None:
        """Last, what speaks of the sources: a source counts as read only once what came from it is stored."""
        self._store_items()
        held = self._store.checkpoints("")
        new = {name: state for name, state in self._checkpoints.items() if name not in held}
        self._store.adopt((), checkpoints=new, bury=self._digests)
        for at in range(0, len(self._events), MAX_BATCH):
            self._store.note(self._events[at : at + MAX_BATCH], keep_from=float("-inf"))
        self.report.redactions = dict(self._cleaner.redactions)
        self.report.pending = self._store.waiting()

    def _register(self, project: Project) -> None:
        if all(each.key != project.key for each in self._store.projects()):
            self._store.register(project, self._now)

    def _take_key(self, key: bytes) -> None:
        """The key of another store's tombstones, beside our own where that has some."""
        if key in _keys(self._store):
            return
        if not self._store.buried():
            self._store.adopt_secret(SECRET, key)
            return
        name = blake2b(key, digest_size=4).hexdigest()
        named = self._store.checkpoints(KEYS).get(KEYS, "").split()
        self._store.adopt_secret(f"{SECRET}:{name}", key)
        self._store.adopt((), checkpoints={KEYS: " ".join(sorted({*named, name}))})

    def _add(self, carried: Carried) -> None:
        item = carried.record.item
        if self._stones is not None and self._stones.holds(item):
            self.report.forgotten += 1
            return
        names = "\n".join((item.id, carried.superseded_by or "", *carried.conflicts))
        try:
            record = self._cleaner.clean(carried.record)
            sound = self._redactor.clean(names).text == names  # a name cannot be changed: others refer to it
        except RedactionError:
            sound = False
        if not sound:
            self.report.unchecked += 1
            return
        # A vector of a text that had a secret in it would still say so.
        kept = carried.vectors if record.passages == carried.record.passages else {}
        placed = self._placed(replace(carried, record=record, vectors=kept))
        if placed is None:
            self.report.older += 1
            return
        self._items.append(placed)
        if len(self._items) == MAX_BATCH:
            self._store_items()

    def _placed(self, carried: Carried) -> Carried | None:
        """An item beside what is here: None where that is newer; history where another took its key since."""
        item = carried.record.item
        here = self._held(item.id)
        if here is not None and here.updated_at > item.updated_at:
            return None
        if item.state != "active" or item.key is None:
            return carried
        rival = self._store.find(item.kind, item.scope, item.key)
        if rival is None or rival.id == item.id or rival.updated_at <= item.updated_at:
            return carried
        text = item.body if item.body is not None else "".join(each.body for each in carried.record.passages)
        old = replace(item, state="superseded", body=self._redactor.clean(text).text)
        record = replace(carried.record, item=old, passages=())
        return replace(carried, record=record, superseded_by=rival.id, state_at=self._now, vectors={})

    def _held(self, item_id: str) -> Item | None:
        try:
            return self._store.item(item_id)[0]
        except NotFound:
            return None

    def _store_items(self) -> None:
        done: SaveReport = self._store.adopt(self._items, space=self._space)
        self._items = []
        for name in ("added", "updated", "unchanged"):
            setattr(self.report, name, getattr(self.report, name) + getattr(done, name))


def _keys(store: Whole) -> frozenset[bytes]:
    return frozenset(key for name, key in store.secrets().items() if name.partition(":")[0] == SECRET)
