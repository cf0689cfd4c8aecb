"""Vectors: kept by pgvector beside the bucket of their passage, searched exactly or through its index.

Up to a size that is set, the vectors of the admitted buckets are compared one by one: every answer is exact, a filter
costs nothing, and there is no index to keep. Beyond it an HNSW index gives the candidates; it goes on where a filter
leaves too few of them (iterative scans). Either way the last digits are ``cosine.best``'s.
Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.base import PendingPassage
from grounded_mcp.stores.cosine import ROUNDING, best
from grounded_mcp.stores.postgres_connection import Connection, Embedding, rows, run, run_many, several
from grounded_mcp.stores.rules import check_space, text_to_embed, unpack_vector
from grounded_mcp.values import Hit, PassageId, ScopeFilter, Space, Vector

SPACE = "space"
SPACE_LOCK = 0x47725370
"""The class of the advisory locks on a store's space: shared by those who store vectors, whole for a reset."""

SLACK = 32
"""Vectors fetched beyond the last that is wanted, for near ties."""

MOST_INDEXED = 2000
"""pgvector's limit of dimensions for an index; a wider vector is always compared exactly."""


def get_space(db: Connection) -> Space | None:
    found = rows(db, sql.GET_META, (SPACE,))
    return Space(*json.loads(found[0][0])) if found else None


def pending(db: Connection, limit: int, after: int) -> tuple[PendingPassage, ...]:
    waiting = rows(db, sql.PENDING, (after, limit))
    return tuple(PendingPassage(id, text_to_embed(title, heading, body)) for id, title, heading, body in waiting)


def embedding(vector: Vector) -> Embedding:
    """A vector as pgvector takes it: its length, two empty bytes, and components in network order."""
    components = array("f", vector)
    if struct.pack("=H", 1) == struct.pack("<H", 1):
        components.byteswap()
    return Embedding(struct.pack(">HH", len(components), 0) + components.tobytes())


def vector_of(sent: bytes) -> Vector:
    """The other way round."""
    components = array("f", bytes(sent)[4:])
    if struct.pack("=H", 1) == struct.pack("<H", 1):
        components.byteswap()
    return Vector(components.tobytes())


def pack(space: Space, vectors: Mapping[PassageId, Vector | None]) -> Mapping[int, Embedding | None]:
    """By passage. Raises: StoreError naming the first vector that is not a unit vector of this space."""
    packed: dict[int, Embedding | None] = {}
    for passage, vector in sorted(vectors.items()):
        if vector is not None:
            unpack_vector(vector, space.dimensions)
        packed[passage] = None if vector is None else embedding(vector)
    return packed


def put(db: Connection, store: int, space: Space, packed: Mapping[int, Embedding | None]) -> int:
    """Store vectors of passages that are still there; returns how many of those have one now."""
    rows(db, sql.SHARE_SPACE, (SPACE_LOCK, store))
    value = json.dumps([space.model, space.dimensions])
    run(db, sql.INIT_META, (SPACE, value))
    check_space(get_space(db), space)
    rows(db, sql.LOCK_OWNERS, (list(packed),))
    without = [passage for passage, vector in packed.items() if vector is None]
    rows(db, sql.SET_STATES, ("none", without))
    run(db, sql.DROP_VECTOR, (without,))
    having = [passage for passage, vector in packed.items() if vector is not None]
    found = sorted(rows(db, sql.SET_STATES, ("ok", having)))
    run_many(db, sql.SET_VECTOR, [(passage, bucket, packed[passage]) for passage, bucket in found])
    return len(found)


def reset(db: Connection, store: int, space: Space | None) -> int:
    """Forget every vector and the space they are of, for ``space`` if given; how many passages wait for one now."""
    rows(db, sql.TAKE_SPACE, (SPACE_LOCK, store))
    for statement in (sql.DROP_INDEX, sql.DROP_VECTORS, sql.ALL_PENDING):
        run(db, statement)
    run(db, sql.DROP_META, (SPACE,))
    if space is not None:
        run(db, sql.SET_META, (SPACE, json.dumps([space.model, space.dimensions])))
    return waiting(db)


def waiting(db: Connection, within: ScopeFilter | None = None) -> int:
    """How many passages, of what is admitted or of all, wait for a vector; an index knows."""
    return int(rows(db, sql.COUNT_PENDING, _admitted(within))[0][0])


def passages(db: Connection, within: ScopeFilter | None = None) -> int:
    """How many passages the items, admitted or all, have; the passages themselves are not read."""
    return int(rows(db, sql.SUM_PASSAGES, _admitted(within))[0][0])


def _admitted(within: ScopeFilter | None) -> dict[str, list[str] | None]:
    sides = {"facts": within.facts, "others": within.others} if within else {"facts": None, "others": None}
    return {side: None if scopes is None else sorted(scopes) for side, scopes in sides.items()}


def count(db: Connection, scopes: Collection[str] | None = None) -> dict[str, int]:
    """How many passages, of some scopes or of all, are in each vector state."""
    found = rows(db, sql.COUNT_PASSAGES, {"any": scopes is None, "scopes": sorted(scopes or ())})
    return {"pending": 0, "ok": 0, "none": 0, **dict(found)}


# --- searching --------------------------------------------------------------------------------------------


def ranked(
    db: Connection, buckets: Sequence[int], vector: Vector, bounds: dict[str, object] | None, k: int, exact: int
) -> tuple[Hit, ...]:
    """The ``k`` nearest passages of the buckets by exact cosine, best first, ties by passage id."""
    import numpy as np

    asked = {"query": embedding(vector), "buckets": list(buckets), "k": k + SLACK, "most": exact + 1, **(bounds or {})}
    found = _indexed(db, asked, len(vector) // 4, k, exact) if bounds is None else None
    if found is None:
        found = _compared(db, asked, bounds is not None, k)
    if not found:
        return ()
    ids = np.fromiter((row[0] for row in found), np.int64, len(found))
    vectors = np.stack([np.frombuffer(row[1], ">f4", offset=4) for row in found]).astype("<f4")
    return best(ids, vectors, np.frombuffer(vector, "<f4"), k)


def _compared(db: Connection, asked: Mapping[str, Any], windowed: bool, k: int) -> list[Any]:
    """Every vector whose distance could be among the ``k`` least."""
    found = rows(db, sql.NEAREST[windowed], asked)
    if len(found) == asked["k"] and found[-1][2] - found[k - 1][2] <= ROUNDING:
        return rows(db, sql.NEARER[windowed], {**asked, "distance": found[k - 1][2] + ROUNDING})
    return found


def _indexed(db: Connection, asked: Mapping[str, Any], dimensions: int, k: int, exact: int) -> list[Any] | None:
    """What the index gives; None where there is none, where so few are admitted, or where it gave too few."""
    if not rows(db, sql.HAS_INDEX)[0][0] or rows(db, sql.ADMITTED, asked)[0][0] <= exact:
        return None
    several(db, f"SET LOCAL hnsw.ef_search = {min(1000, max(asked['k'], _ef_search(db)))}")
    found = rows(db, sql.INDEXED.format(dimensions=dimensions), asked)
    return found if len(found) >= k else None


def _ef_search(db: Connection) -> int:
    return int(rows(db, "SELECT current_setting('hnsw.ef_search')")[0][0])


def wants_index(db: Connection, exact: int) -> str | None:
    """The statement that makes the index, where there are enough vectors and it is not there."""
    space = get_space(db)
    if space is None or space.dimensions > MOST_INDEXED or rows(db, sql.HAS_INDEX)[0][0]:
        return None
    many = rows(db, sql.COUNT_VECTORS, (exact + 1,))[0][0] > exact
    return sql.MAKE_INDEX.format(dimensions=space.dimensions) if many else None
