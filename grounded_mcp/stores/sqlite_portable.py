"""Items handed over whole: read with all that is known of them, and put in just so.

Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from grounded_mcp.stores import sqlite_read as reading
from grounded_mcp.stores import sqlite_sources as sources
from grounded_mcp.stores import sqlite_vectors as vectors_
from grounded_mcp.stores import sqlite_write as writing
from grounded_mcp.stores.indexing import Tokens
from grounded_mcp.stores.portable import Carried
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.values import PassageId, Record, SaveReport, Space, Vector

PLACE = "SELECT state_at, superseded_by FROM item WHERE id = ?"
LINKS = """
SELECT two.id FROM item AS one JOIN conflict ON conflict.item = one.num JOIN item AS two ON two.num = conflict.other
WHERE one.id = ? ORDER BY two.id"""
EMBEDDED = """
SELECT passage.seq, embedding FROM item JOIN passage ON passage.item = item.num
LEFT JOIN vector ON vector.passage = passage.id WHERE item.id = ? AND vector_state <> 'pending' ORDER BY passage.seq"""
SET_PLACE = """
UPDATE item SET state_at = ?2, superseded_by = ?3
WHERE id = ?1 AND (state_at IS NOT ?2 OR superseded_by IS NOT ?3)"""
WAITING = """
SELECT passage.seq, passage.id FROM item JOIN passage ON passage.item = item.num
WHERE item.id = ? AND vector_state = 'pending'"""
SECRETS = "SELECT name, value FROM secret ORDER BY name"
SET_SECRET = "INSERT OR REPLACE INTO secret (name, value) VALUES (?, ?)"  # noqa: S105 - a statement

Packed = Mapping[str, Mapping[int, tuple[bytes | None, bytes | None]]]
"""By item and ``Passage.seq``: a vector and its sketch, or neither."""


def carry(db: apsw.Connection, after: str, limit: int, *, vectors: bool) -> tuple[Carried, ...]:
    return tuple(_carried(db, item_id, vectors=vectors) for item_id in reading.ids(db, after, limit))


def _carried(db: apsw.Connection, item_id: str, *, vectors: bool) -> Carried:
    item, passages = reading.item(db, item_id)
    state_at, superseded_by = rows(db, PLACE, (item_id,))[0]
    return Carried(
        Record(item, passages, sources.evidence(db, item_id)),
        state_at,
        superseded_by,
        tuple(other for (other,) in db.execute(LINKS, (item_id,))),
        dict(rows(db, EMBEDDED, (item_id,))) if vectors else {},
    )


def pack(carried: Iterable[Carried], space: Space | None) -> Packed:
    """Vectors as they are stored, made before the write lock is taken. Raises: StoreError for one that does not fit."""
    if space is None:
        return {}
    return {each.record.item.id: _pack(each.vectors, space) for each in carried}


def _pack(vectors: Mapping[int, Vector | None], space: Space) -> dict[int, tuple[bytes | None, bytes | None]]:
    numbered = {PassageId(seq): vector for seq, vector in vectors.items()}
    return {seq: (vector, code) for seq, vector, code in vectors_.pack(space, numbered)}


def adopt(
    db: apsw.Connection,
    carried: Sequence[Carried],
    tokens: Tokens,
    now: float,
    space: Space | None,
    made: Packed,
) -> SaveReport:
    report = writing.save(db, [each.record for each in carried], {}, tokens, now)
    for each in carried:
        item_id = each.record.item.id
        db.execute(SET_PLACE, (item_id, each.state_at, each.superseded_by))
        sources.add_conflicts(db, [(item_id, other) for other in each.conflicts])
    held = vectors_.get_space(db)
    if space is not None and made and held in (None, space):
        packed = [row for each in carried for row in _placed(db, each.record.item.id, made)]
        vectors_.put(db, space, packed)
    return report


def _placed(db: apsw.Connection, item_id: str, made: Packed) -> Iterable[tuple[int, Any, Any]]:
    """The vectors of an item by the ids of the passages that wait for them."""
    given = made.get(item_id, {})
    return [(passage, *given[seq]) for seq, passage in rows(db, WAITING, (item_id,)) if seq in given]


def secrets(db: apsw.Connection) -> Mapping[str, bytes]:
    return {name: bytes(value) for name, value in db.execute(SECRETS)}


def set_secret(db: apsw.Connection, name: str, value: bytes) -> None:
    db.execute(SET_SECRET, (name, value))
