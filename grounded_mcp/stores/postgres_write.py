"""Writing records: an item, its passages and every index over them change together.

Functions over a connection inside a transaction that someone else opened. What is equal stays untouched, so that
an unchanged passage keeps its id and its vector. Every verb locks its items first, in one order. Knows nothing about
vectors themselves.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

from grounded_mcp.errors import NotFound
from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.indexing import Tokens, digest_of
from grounded_mcp.stores.item_rows import row_of
from grounded_mcp.stores.postgres_connection import Connection, rows, run, run_many
from grounded_mcp.stores.postgres_entities import add as add_mentions
from grounded_mcp.stores.postgres_errors import Overtaken
from grounded_mcp.stores.postgres_sources import add_evidence
from grounded_mcp.stores.postgres_terms import Changes
from grounded_mcp.values import Item, Passage, Record, SaveReport, State

LOCK_OF_NAMES = 0x47724E6D
"""The class of the advisory locks on names of items and keys, together with the store's number."""

Place = tuple[str, str]
"""A scope and a kind."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What a write is done with: the connection, what changes of the inverted index, the buckets by their place, and
    the items that it holds, by number."""

    db: Connection
    changes: Changes
    tokens: Tokens
    buckets: Mapping[Place, int]
    locked: set[int]
    now: float

    def check(self, num: int) -> int:
        """Raises: Overtaken for an item that is not ours to change."""
        if num not in self.locked:
            raise Overtaken("an item was put in meanwhile")
        return num


def known_digests(db: Connection, ids: Sequence[str]) -> frozenset[bytes]:
    """The digests of the passages that these items have."""
    return frozenset(row[0] for row in rows(db, sql.KNOWN_DIGESTS, (list(ids),)))


def buckets_of(db: Connection, records: Sequence[Record]) -> Mapping[Place, int]:
    """The buckets of records, made where they are not there yet."""
    places = sorted({(record.item.scope, record.item.kind) for record in records})
    given = ([scope for scope, _ in places], [kind for _, kind in places])
    found = {(scope, kind): bucket for scope, kind, bucket in rows(db, sql.FIND_BUCKETS, given)}
    if len(found) < len(places):
        run(db, sql.ADD_BUCKETS, given)
        found = {(scope, kind): bucket for scope, kind, bucket in rows(db, sql.FIND_BUCKETS, given)}
    return found


def lock(
    db: Connection,
    store: int,
    ids: Collection[str],
    sessions: Collection[str] = (),
    records: Sequence[Record] = (),
    buckets: Mapping[Place, int] | None = None,
) -> set[int]:
    """Hold every item that is about to change: those named, those that a session is evidence for, and those that lose
    their key. Returns their numbers; what is put in later is not among them."""
    keyed = [item for item in (record.item for record in records) if item.key is not None]
    asked: dict[str, list[Any]] = {
        "ids": [*ids, *(record.item.id for record in records)],
        "sessions": list(sessions),
        "buckets": [(buckets or {})[(item.scope, item.kind)] for item in keyed],
        "keys": [item.key for item in keyed],
    }
    names = {*asked["ids"], *(f"{bucket} {key}" for bucket, key in zip(asked["buckets"], asked["keys"], strict=True))}
    rows(db, sql.LOCK_NAMES, (LOCK_OF_NAMES ^ store, sorted(crc32(each.encode()) >> 1 for each in names)))
    return {num for (num,) in rows(db, sql.LOCK_ITEMS, asked)}


def save(writing: Writing, records: Sequence[Record], supersede: Mapping[str, str]) -> SaveReport:
    """Put records in and retire what they supersede. Raises: NotFound for an id that is not there."""
    counts: dict[str, int] = defaultdict(int)
    for old, new in supersede.items():
        if old != new:
            counts["superseded"] += _retire(writing, _number(writing.db, old), new)
    for record in records:
        outcome, superseded, pending = _put(writing, record)
        counts[outcome] += 1
        counts["superseded"] += superseded
        counts["pending"] += pending
    add_evidence(writing.db, records)
    for new in supersede.values():
        _number(writing.db, new)
    return SaveReport(**counts)


def mark(writing: Writing, ids: Sequence[str], state: State) -> int:
    """Set the state of the items that are there and have another; ``superseded`` takes them out of every index."""
    changed = 0
    for item_id in dict.fromkeys(ids):
        for num, before in rows(writing.db, sql.ITEM_NUM, (item_id,)):
            if before == state:
                continue
            if state == "superseded":
                _retire(writing, (num, before), None)
            else:
                run(writing.db, sql.MARK_ITEM, (state, writing.now, writing.check(num)))
            changed += 1
    return changed


def delete(db: Connection, changes: Changes, ids: Sequence[str], locked: set[int]) -> int:
    """Remove items that are ours; their passages, index entries and vectors go with them."""
    return delete_numbered(db, changes, [num for (num,) in rows(db, sql.NUMS, (list(ids),)) if num in locked])


def delete_numbered(db: Connection, changes: Changes, nums: Sequence[int]) -> int:
    if not nums:
        return 0
    changes.remove(rows(db, sql.HELD_TOKENS, (list(nums),)))
    return run(db, sql.DELETE_ITEMS, (list(nums),))


def _number(db: Connection, item_id: str) -> tuple[int, str]:
    found = rows(db, sql.ITEM_NUM, (item_id,))
    if not found:
        raise NotFound("id", f"there is no item {item_id}.", "Use an id that a recall returned.")
    num, state = found[0]
    return num, state


def _retire(writing: Writing, old: tuple[int, str], by: str | None) -> int:
    """Keep an item as history only: its text moves into ``body``, its passages leave every index."""
    num, state = old
    run(writing.db, sql.RETIRE_ITEM, {"num": writing.check(num), "by": by, "at": writing.now})
    held = rows(writing.db, sql.HELD_TOKENS, ([num],))
    _drop_passages(writing, held)
    return state != "superseded"


def _drop_passages(writing: Writing, held: Sequence[Any]) -> None:
    if held:
        writing.changes.remove(held)
        run(writing.db, sql.DELETE_PASSAGES, ([passage for passage, _, _ in held],))


Outcome = Literal["added", "updated", "unchanged"]


def _put(writing: Writing, record: Record) -> tuple[Outcome, int, int]:
    """One record: its outcome, how many items lost their key to it, how many passages wait for a vector."""
    item, db = record.item, writing.db
    passages = () if item.state == "superseded" else record.passages
    bucket = writing.buckets[(item.scope, item.kind)]
    superseded = 0
    if item.state == "active" and item.key is not None:
        for num, _ in rows(db, sql.RIVALS, (bucket, item.key, item.id)):
            superseded += _retire(writing, (num, "active"), item.id)
    row = row_of(item, bucket, passages)
    stored = next(iter(rows(db, sql.ITEM_ROW, (item.id,))), None)
    if stored is None:
        num = rows(db, sql.INSERT_ITEM, row)[0][0]
        writing.locked.add(num)
    else:
        num = writing.check(stored[0])
        if stored[1:] != row:
            run(db, sql.UPDATE_ITEM, (*row, item.state == "superseded", num))
        if stored[2] != bucket:
            _move(writing, num, bucket)
    changed, pending = _put_passages(writing, num, bucket, item, passages, fresh=stored is None)
    if stored is None:
        return "added", superseded, pending
    return "updated" if changed or stored[1:] != row else "unchanged", superseded, pending


def _move(writing: Writing, num: int, bucket: int) -> None:
    """An item's passages go to another bucket, in every index."""
    held = rows(writing.db, sql.HELD_TOKENS, ([num],))
    ids = [passage for passage, _, _ in held]
    run(writing.db, sql.MOVE_PASSAGES, (bucket, num))
    for statement in (sql.MOVE_VECTORS, sql.MOVE_MENTIONS):
        run(writing.db, statement, (bucket, ids))
    writing.changes.remove(held)
    writing.changes.add((passage, bucket, tokens) for passage, _, tokens in held)


def _put_passages(
    writing: Writing, num: int, bucket: int, item: Item, passages: Sequence[Passage], *, fresh: bool
) -> tuple[bool, int]:
    """Whether anything changed, and how many passages are new. Equal passages are kept, in their new place."""
    spare: dict[bytes, deque[tuple[int, tuple[Any, ...]]]] = defaultdict(deque)
    for passage_id, digest, *place in () if fresh else rows(writing.db, sql.ITEM_PASSAGES, (num,)):
        spare[digest].append((passage_id, tuple(place)))
    moved, new = [], []
    for passage in passages:
        digest = digest_of(item, passage)
        place = (passage.seq, passage.start_line, passage.end_line, passage.at)
        if not spare[digest]:
            new.append((digest, passage))
            continue
        passage_id, before = spare[digest].popleft()
        if before != place:
            moved.append((*place, passage_id))
    gone = [passage_id for kept in spare.values() for passage_id, _ in kept]
    if gone:
        _drop_passages(writing, rows(writing.db, sql.SOME_TOKENS, (gone,)))
    run_many(writing.db, sql.PLACE_PASSAGE, moved)
    _insert(writing, num, bucket, item, new)
    return bool(gone or moved or new), len(new)


def _insert(writing: Writing, num: int, bucket: int, item: Item, new: Sequence[tuple[bytes, Passage]]) -> None:
    if not new:
        return
    ids = [each for (each,) in rows(writing.db, sql.NEXT_IDS, (len(new),))]
    made = [writing.tokens.of(digest, item, passage) for digest, passage in new]
    said = [passage for _, passage in new]
    columns = (
        *(ids, [num] * len(ids), [bucket] * len(ids), [each.seq for each in said]),
        *([each.start_line for each in said], [each.end_line for each in said]),
        [None if each.at is None else float(each.at) for each in said],
        *([digest for digest, _ in new], [each.heading for each in said], [each.body for each in said]),
        [each.tokens for each in made],
    )
    run(writing.db, sql.INSERT_PASSAGES, columns)
    add_mentions(writing.db, bucket, ids, [each.entities for each in made])
    writing.changes.add((passage, bucket, each.tokens) for passage, each in zip(ids, made, strict=True))
