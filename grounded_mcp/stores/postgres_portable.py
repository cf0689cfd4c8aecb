"""Items handed over whole: read with all that is known of them, and put in just so.

Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grounded_mcp.stores import postgres_read as reading
from grounded_mcp.stores import postgres_sources as sources
from grounded_mcp.stores import postgres_vectors as vectors_
from grounded_mcp.stores import postgres_write as writing
from grounded_mcp.stores.portable import Carried
from grounded_mcp.stores.postgres_connection import Connection, Embedding, rows, run
from grounded_mcp.values import PassageId, Record, SaveReport, Space, Vector

PLACE = "SELECT state_at, superseded_by FROM item WHERE id = %s"
LINKS = """
SELECT two.id FROM item AS one JOIN conflict ON conflict.item = one.num JOIN item AS two ON two.num = conflict.other
WHERE one.id = %s ORDER BY two.id"""
EMBEDDED = """
SELECT passage.seq, vector_send(embedding) FROM item JOIN passage ON passage.item = item.num
LEFT JOIN embedded ON embedded.passage = passage.id
WHERE item.id = %s AND vector_state <> 'pending' ORDER BY passage.seq"""
SET_PLACE = """
UPDATE item SET state_at = %(at)s, superseded_by = %(by)s WHERE id = %(id)s
AND (state_at IS DISTINCT FROM %(at)s::double precision OR superseded_by IS DISTINCT FROM %(by)s::text)"""
WAITING = """
SELECT passage.seq, passage.id FROM item JOIN passage ON passage.item = item.num
WHERE item.id = %s AND vector_state = 'pending'"""
SECRETS = "SELECT name, value FROM secret ORDER BY name"
SET_SECRET = """
INSERT INTO secret (name, value) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""  # noqa: S105 - a statement

Packed = Mapping[str, Mapping[int, Embedding | None]]
"""Vectors by item and ``Passage.seq``."""


def carry(db: Connection, after: str, limit: int, *, vectors: bool) -> tuple[Carried, ...]:
    return tuple(_carried(db, item_id, vectors=vectors) for item_id in reading.ids(db, after, limit))


def _carried(db: Connection, item_id: str, *, vectors: bool) -> Carried:
    item, passages = reading.item(db, item_id)
    state_at, superseded_by = rows(db, PLACE, (item_id,))[0]
    held = rows(db, EMBEDDED, (item_id,)) if vectors else []
    return Carried(
        Record(item, passages, sources.evidence(db, item_id)),
        state_at,
        superseded_by,
        tuple(other for (other,) in rows(db, LINKS, (item_id,))),
        {seq: None if sent is None else vectors_.vector_of(sent) for seq, sent in held},
    )


def pack(carried: Iterable[Carried], space: Space | None) -> Packed:
    """Vectors as they are stored, made before the write begins. Raises: StoreError for one that does not fit."""
    if space is None:
        return {}
    return {each.record.item.id: _pack(each.vectors, space) for each in carried}


def _pack(vectors: Mapping[int, Vector | None], space: Space) -> Mapping[int, Embedding | None]:
    return vectors_.pack(space, {PassageId(seq): vector for seq, vector in vectors.items()})


def adopt(
    state: writing.Writing, store: int, carried: Sequence[Carried], space: Space | None, made: Packed
) -> SaveReport:
    db = state.db
    report = writing.save(state, [each.record for each in carried], {})
    for each in carried:
        item_id = each.record.item.id
        run(db, SET_PLACE, {"id": item_id, "at": each.state_at, "by": each.superseded_by})
    sources.add_conflicts(db, [(each.record.item.id, other) for each in carried for other in each.conflicts])
    held = vectors_.get_space(db)
    if space is not None and made and held in (None, space):
        packed = dict(pair for each in carried for pair in _placed(db, each.record.item.id, made))
        vectors_.put(db, store, space, packed)
    return report


def _placed(db: Connection, item_id: str, made: Packed) -> Iterable[tuple[int, Embedding | None]]:
    """The vectors of an item by the ids of the passages that wait for them."""
    given = made.get(item_id, {})
    return [(passage, given[seq]) for seq, passage in rows(db, WAITING, (item_id,)) if seq in given]


def secrets(db: Connection) -> Mapping[str, bytes]:
    return {name: bytes(value) for name, value in rows(db, SECRETS)}


def set_secret(db: Connection, name: str, value: bytes) -> None:
    run(db, SET_SECRET, (name, value))
