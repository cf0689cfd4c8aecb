"""Vectors: the exact ones, and a coarse copy that is swept first.

Two tables: ``vector`` holds the truth as float32; ``sketch`` holds one signed byte per component, ordered by bucket.
A search sweeps the sketches of the admitted buckets by L1 distance, which sqlite-vec computes fastest, and compares
the best of them exactly. Measured at 9,027 real MiniLM vectors: 2.5 ms for k = 30 at a recall of 1.000 against
4.8-6.2 ms for sqlite-vec's own index (vec0, int8, rescored) and 8.5 ms for an exact sweep; and unlike vec0, a plain
table takes any filter, costs nothing per partition, and rolls back, cascades and deletes like every other table.
Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Collection, Mapping, Sequence

import apsw

from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.base import PendingPassage
from grounded_mcp.stores.rules import check_space, text_to_embed, unpack_vector
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.values import PassageId, ScopeFilter, Space, Vector

SPACE = "space"

DEVIATIONS = 6.0
"""Components of a random unit vector in d dimensions deviate by 1/sqrt(d); a byte spans this many deviations either
way. The largest of 9,027 MiniLM vectors was 5.2."""

CANDIDATE_FACTOR = 8
CANDIDATE_MINIMUM = 256
"""Sketches compared exactly per search: ``max(factor * k, minimum)``. Smaller buckets are thereby searched exactly.

A third of that gives real vectors a recall of 1.000; random ones, whose neighbours are all about equally far, need
it for 0.996 (2,500 vectors, k = 30)."""


def candidates(k: int) -> int:
    return max(CANDIDATE_FACTOR * k, CANDIDATE_MINIMUM)


def sketch_of(components: Sequence[float]) -> bytes:
    """One signed byte per component, scaled to the spread that components of unit vectors have."""
    scale = 127.0 * math.sqrt(len(components)) / DEVIATIONS
    return array("b", [max(-127, min(127, round(x * scale))) for x in components]).tobytes()


def get_space(db: apsw.Connection) -> Space | None:
    row = db.execute(sql.GET_META, (SPACE,)).fetchone()
    return Space(*json.loads(row[0])) if row else None


def _set_space(db: apsw.Connection, space: Space) -> None:
    db.execute(sql.SET_META, (SPACE, json.dumps([space.model, space.dimensions])))


def pending(db: apsw.Connection, limit: int, after: int) -> tuple[PendingPassage, ...]:
    waiting = rows(db, sql.PENDING, (after, limit))
    return tuple(PendingPassage(id, text_to_embed(title, heading, body)) for id, title, heading, body in waiting)


def pack(space: Space, vectors: Mapping[PassageId, Vector | None]) -> list[tuple[int, bytes | None, bytes | None]]:
    """Passage, vector, sketch. Raises: StoreError naming the first vector that is not a unit vector of this space."""
    packed: list[tuple[int, bytes | None, bytes | None]] = []
    for passage, vector in vectors.items():
        code = None if vector is None else sketch_of(unpack_vector(vector, space.dimensions))
        packed.append((passage, vector, code))
    return packed


def put(db: apsw.Connection, space: Space, packed: Sequence[tuple[int, bytes | None, bytes | None]]) -> int:
    """Store vectors of passages that are still there; returns how many of those have one now."""
    held = get_space(db)
    check_space(held, space)
    if held is None:
        _set_space(db, space)
    stored = 0
    for passage, vector, code in packed:
        found = rows(db, sql.SET_VECTOR_STATE, ("none" if vector is None else "ok", passage))
        if not found:
            continue
        if vector is None:
            db.execute(sql.DROP_VECTOR, (passage,))
            db.execute(sql.DROP_SKETCH, (found[0][0], passage))
        else:
            db.execute(sql.SET_VECTOR, (passage, vector))
            db.execute(sql.SET_SKETCH, (found[0][0], passage, code))
            stored += 1
    return stored


def reset(db: apsw.Connection, space: Space | None) -> int:
    """Forget every vector and the space they are of, for ``space`` if given; how many passages wait for one now."""
    for statement in (sql.DROP_SKETCHES, sql.DROP_VECTORS, sql.ALL_PENDING):
        db.execute(statement)
    db.execute(sql.DROP_META, (SPACE,))
    if space is not None:
        _set_space(db, space)
    return waiting(db)


def waiting(db: apsw.Connection, within: ScopeFilter | None = None) -> int:
    """How many passages, of what is admitted or of all, wait for a vector; an index knows."""
    return int(rows(db, sql.COUNT_PENDING, _admitted(within))[0][0])


def passages(db: apsw.Connection, within: ScopeFilter | None = None) -> int:
    """How many passages the items, admitted or all, have; the passages themselves are not read."""
    return int(rows(db, sql.SUM_PASSAGES, _admitted(within))[0][0])


def _admitted(within: ScopeFilter | None) -> dict[str, str | None]:
    sides = {"facts": within.facts, "others": within.others} if within else {"facts": None, "others": None}
    return {side: None if scopes is None else json.dumps(sorted(scopes)) for side, scopes in sides.items()}


def count(db: apsw.Connection, scopes: Collection[str] | None = None) -> dict[str, int]:
    """How many passages, of some scopes or of all, are in each vector state."""
    if scopes is None:
        found = rows(db, sql.COUNT_PASSAGES)
    else:
        found = rows(db, sql.COUNT_PASSAGES_OF, (json.dumps(sorted(scopes)),))
    return {"pending": 0, "ok": 0, "none": 0, **dict(found)}
