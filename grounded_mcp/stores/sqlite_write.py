"""Writing records: an item, its passages and every index over them change together.

Functions over a connection inside a transaction that someone else opened. What is equal stays untouched, so that
an unchanged passage keeps its id and its vector. Knows nothing about vectors themselves.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import apsw

from grounded_mcp.errors import NotFound
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.indexing import Tokens, digest_of
from grounded_mcp.stores.item_rows import row_of
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.stores.sqlite_entities import add as add_mentions
from grounded_mcp.stores.sqlite_sources import add_evidence
from grounded_mcp.values import Item, Passage, Record, SaveReport, State


def known_digests(db: apsw.Connection, ids: Sequence[str]) -> frozenset[bytes]:
    """The digests of the passages that these items have."""
    return frozenset(row[0] for row in db.execute(sql.KNOWN_DIGESTS, (json.dumps(ids),)))


def save(
    db: apsw.Connection, records: Sequence[Record], supersede: Mapping[str, str], tokens: Tokens, now: float
) -> SaveReport:
    """Put records in and retire what they supersede. Raises: NotFound for an id that is not there."""
    counts: dict[str, int] = defaultdict(int)
    for old, new in supersede.items():
        if old != new:
            counts["superseded"] += _retire(db, _number(db, old), new, now)
    for record in records:
        outcome, superseded, pending = _put(db, record, tokens, now)
        counts[outcome] += 1
        counts["superseded"] += superseded
        counts["pending"] += pending
    for record in records:
        add_evidence(db, record.item.id, record.evidence)
    for new in supersede.values():
        _number(db, new)
    return SaveReport(**counts)


def mark(db: apsw.Connection, ids: Sequence[str], state: State, at: float) -> int:
    """Set the state of the items that are there and have another; ``superseded`` takes them out of every index."""
    changed = 0
    for item_id in dict.fromkeys(ids):
        for num, before in rows(db, sql.ITEM_NUM, (item_id,)):
            if before == state:
                continue
            if state == "superseded":
                _retire(db, (num, before), None, at)
            else:
                db.execute(sql.MARK_ITEM, (state, at, num))
            changed += 1
    return changed


def delete(db: apsw.Connection, ids: Sequence[str]) -> int:
    """Remove items; their passages, index entries and vectors go with them."""
    db.execute(sql.DELETE_ITEMS, (json.dumps(ids),))
    return db.changes()


def _number(db: apsw.Connection, item_id: str) -> tuple[int, str]:
    found = rows(db, sql.ITEM_NUM, (item_id,))
    if not found:
        raise NotFound("id", f"there is no item {item_id}.", "Use an id that a recall returned.")
    num, state = found[0]
    return num, state


def _retire(db: apsw.Connection, old: tuple[int, str], by: str | None, at: float) -> int:
    """Keep an item as history only: its text moves into ``body``, its passages leave every index."""
    num, state = old
    db.execute(sql.RETIRE_ITEM, {"num": num, "by": by, "at": at})
    db.execute(sql.DELETE_ITEM_PASSAGES, (num,))
    return state != "superseded"


Outcome = Literal["added", "updated", "unchanged"]


def _put(db: apsw.Connection, record: Record, tokens: Tokens, now: float) -> tuple[Outcome, int, int]:
    """One record: its outcome, how many items lost their key to it, how many passages wait for a vector."""
    item = record.item
    passages = () if item.state == "superseded" else record.passages
    bucket = _bucket(db, item)
    superseded = 0
    if item.state == "active" and item.key is not None:
        for num, _ in rows(db, sql.RIVALS, (bucket, item.key, item.id)):
            superseded += _retire(db, (num, "active"), item.id, now)
    row = row_of(item, bucket, passages)
    stored = db.execute(sql.ITEM_ROW, (item.id,)).fetchone()
    if stored is None:
        db.execute(sql.INSERT_ITEM, row)
        num = db.last_insert_rowid()
    else:
        num = stored[0]
        if stored[1:] != row:
            db.execute(sql.UPDATE_ITEM, (*row, num))
            db.execute(sql.MOVE_PASSAGES, (bucket, num))
    changed, pending = _put_passages(db, num, bucket, item, passages, tokens)
    if stored is None:
        return "added", superseded, pending
    return "updated" if changed or stored[1:] != row else "unchanged", superseded, pending


def _put_passages(
    db: apsw.Connection, num: int, bucket: int, item: Item, passages: Sequence[Passage], tokens: Tokens
) -> tuple[bool, int]:
    """Whether anything changed, and how many passages are new. Equal passages are kept, in their new place."""
    spare: dict[bytes, deque[tuple[int, tuple[Any, ...]]]] = defaultdict(deque)
    for passage_id, digest, *place in rows(db, sql.ITEM_PASSAGES, (num,)):
        spare[digest].append((passage_id, tuple(place)))
    moved, new, named = [], [], []
    for passage in passages:
        digest = digest_of(item, passage)
        place = (passage.seq, passage.start_line, passage.end_line, passage.at)
        if not spare[digest]:
            found = tokens.of(digest, item, passage)
            new.append((num, bucket, *place, digest, passage.heading, passage.body, found.tokens))
            named.append(found.entities)
            continue
        passage_id, before = spare[digest].popleft()
        if before != place:
            moved.append((*place, passage_id))
    gone = [(passage_id,) for kept in spare.values() for passage_id, _ in kept]
    db.executemany(sql.DELETE_PASSAGE, gone)
    db.executemany(sql.PLACE_PASSAGE, moved)
    added = [passage_id for (passage_id,) in db.executemany(sql.INSERT_PASSAGE, new)]
    add_mentions(db, bucket, added, named)
    return bool(gone or moved or new), len(new)


def _bucket(db: apsw.Connection, item: Item) -> int:
    place = (item.scope, item.kind)
    found = rows(db, sql.FIND_BUCKET, place) or rows(db, sql.INSERT_BUCKET, place)
    return int(found[0][0])
