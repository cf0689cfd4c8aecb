"""Reading and searching: rows back into values, and the lanes' searches.

Functions over a connection inside a transaction that someone else opened. pgvector's distances end here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from grounded_mcp.entities import EntityId
from grounded_mcp.errors import NotFound
from grounded_mcp.stores import postgres_entities, postgres_terms
from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.base import Known
from grounded_mcp.stores.item_rows import item_of, stored_passages
from grounded_mcp.stores.postgres_connection import Connection, rows
from grounded_mcp.stores.postgres_vectors import get_space, ranked
from grounded_mcp.stores.rules import MAX_TERMS, REACH, check_space, clamp, unpack_vector, window, window_scale
from grounded_mcp.stores.timing import timed_hits
from grounded_mcp.values import (
    EvidenceKind,
    Filter,
    Hit,
    Item,
    Kind,
    Passage,
    PassageId,
    Project,
    Space,
    StoredPassage,
    Tally,
    Vector,
)

# --- rows -------------------------------------------------------------------------------------------------


def item(db: Connection, item_id: str) -> tuple[Item, tuple[Passage, ...]]:
    found = rows(db, sql.ITEM, (item_id,))
    if not found:
        raise NotFound("id", f"there is no item {item_id}.", "Use an id that a recall returned.")
    return item_of(found[0]), tuple(Passage(*passage) for passage in rows(db, sql.PASSAGES, (item_id,)))


def ids(db: Connection, after: str, limit: int) -> tuple[str, ...]:
    return tuple(row[0] for row in rows(db, sql.IDS, (after, max(0, limit))))


def find(db: Connection, kind: Kind, scope: str, key: str) -> Item | None:
    found = rows(db, sql.FIND, (kind, scope, key))
    return item_of(found[0]) if found else None


def history(db: Connection, item_id: str, limit: int) -> tuple[Item, ...]:
    return tuple(item_of(row) for row in rows(db, sql.HISTORY, {"id": item_id, "k": clamp(limit)}))


def successor(db: Connection, item_id: str) -> Item | None:
    found = rows(db, sql.SUCCESSOR, (item_id,))
    return item_of(found[0]) if found else None


def conflicts(db: Connection, ids: Sequence[str]) -> Mapping[str, tuple[Item, ...]]:
    found: dict[str, tuple[Item, ...]] = {}
    for item_id, *row in rows(db, sql.CONFLICTS, (list(ids),)):
        found[item_id] = (*found.get(item_id, ()), item_of(row))
    return found


def known(db: Connection, kind: Kind, scope: str) -> Mapping[str, Known]:
    return {
        key: Known(id, key, content, state, created_at, updated_at, json.loads(attrs))
        for id, key, content, state, created_at, updated_at, attrs in rows(db, sql.KNOWN, (kind, scope))
    }


def recent(db: Connection, where: Filter, k: int) -> tuple[Item, ...]:
    windowed, since, until = window(where)
    asked = {"buckets": _buckets(db, where), "k": clamp(k), "windowed": windowed, "since": since, "until": until}
    return tuple(item_of(row) for row in rows(db, sql.RECENT, asked))


def tallies(db: Connection, ids: Sequence[str]) -> Mapping[str, tuple[Tally, ...]]:
    found = rows(db, sql.TALLIES, (list(ids),))
    return {
        item_id: tuple(Tally(kind, supports, times, newest) for _, kind, supports, times, newest in group)
        for item_id, group in groupby(found, itemgetter(0))
    }


def proven(db: Connection, where: Filter, weights: Mapping[EvidenceKind, float], k: int) -> tuple[tuple[str, ...], int]:
    asked = {
        "buckets": _buckets(db, where),
        "k": max(1, clamp(k)),  # one row at least tells how many there are
        "verified": weights["verified outcome"],
        "stated": weights["stated"],
        "diagnostic": weights["diagnostic episode"],
    }
    found = rows(db, sql.PROVEN, asked)
    return tuple(id for id, _ in found[: clamp(k)]), found[0][1] if found else 0


def fetch(db: Connection, ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
    """Passages with their items; passages of one item share one ``Item``."""
    found = dict(stored_passages(rows(db, sql.FETCH, (list(ids),))))
    return {passage_id: found[passage_id] for passage_id in ids if passage_id in found}


def count(db: Connection, scopes: Collection[str] | None) -> Mapping[Kind, int]:
    """Items by kind, of some scopes or of all."""
    return dict(rows(db, sql.COUNT_ITEMS, {"any": scopes is None, "scopes": sorted(scopes or ())}))


def scopes(db: Connection) -> frozenset[str]:
    return frozenset(row[0] for row in rows(db, sql.SCOPES))


def projects(db: Connection) -> tuple[Project, ...]:
    return tuple(Project(*row) for row in rows(db, sql.PROJECTS))


# --- searches ---------------------------------------------------------------------------------------------


def lexical(db: Connection, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
    """BM25 as FTS5 computes it (k1 1.2, b 0.75). Statistics are those of the whole store."""
    buckets = _buckets(db, where)
    if not terms or not buckets or not clamp(k):
        return ()
    return postgres_terms.lexical(db, terms[:MAX_TERMS], buckets, _bounds(where), clamp(k))


def nearest(db: Connection, vector: Vector, where: Filter, k: int, space: Space | None, exact: int) -> tuple[Hit, ...]:
    """The nearest passages by exact cosine; among those that the index gives where more than ``exact`` are admitted."""
    held = get_space(db)
    if held is None:
        return ()
    if space is not None:
        check_space(held, space)
    unpack_vector(vector, held.dimensions)
    buckets = _buckets(db, where)
    if not buckets or not clamp(k):
        return ()
    return ranked(db, buckets, vector, _bounds(where), clamp(k), exact)


def timed(db: Connection, since: float, until: float, where: Filter, k: int) -> tuple[Hit, ...]:
    """Every item that is near the window by its first exchange in it, and by its others where that is not enough."""
    scale = window_scale(since, until)
    windowed, floor, ceiling = window(where)
    bounds = {"since": since, "until": until, "windowed": windowed, "floor": floor, "ceiling": ceiling}
    asked = {**bounds, "buckets": _buckets(db, where), "k": clamp(k), "reach": 0.0}
    found = rows(db, sql.TIMED_INSIDE, asked)
    if len(found) < clamp(k):
        asked["reach"] = REACH * scale
        found = rows(db, sql.TIMED_NEAR, asked)
    near = {num: (inside, gap) for num, inside, gap in found}
    passages = rows(db, sql.TIMED_PASSAGES, {**asked, "items": list(near)})
    return timed_hits(near, passages, (since, until), scale, clamp(k))


def mentions(
    db: Connection, named: Sequence[EntityId], where: Filter, most: int
) -> Mapping[EntityId, tuple[PassageId, ...]]:
    """Who names what, within a filter."""
    buckets = _buckets(db, where)
    return postgres_entities.mentions(db, named, buckets, _bounds(where), clamp(most)) if named and buckets else {}


def _buckets(db: Connection, where: Filter) -> list[int]:
    asked = {"kinds": sorted(where.kinds), "any": where.scopes is None, "scopes": sorted(where.scopes or ())}
    return [row[0] for row in rows(db, sql.BUCKETS, asked)]


def _bounds(where: Filter) -> dict[str, object] | None:
    """The bounds in time; None where there are none."""
    windowed, since, until = window(where)
    return {"since": since, "until": until} if windowed else None
