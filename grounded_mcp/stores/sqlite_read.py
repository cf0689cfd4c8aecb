"""Reading and searching: rows back into values, and the lanes' searches.

Functions over a connection inside a transaction that someone else opened. FTS5's signs and distances end here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import cast

import apsw

from grounded_mcp.entities import EntityId
from grounded_mcp.errors import NotFound
from grounded_mcp.stores import sqlite_entities
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.base import Known
from grounded_mcp.stores.item_rows import item_of, stored_passages
from grounded_mcp.stores.rules import (
    MAX_TERMS,
    REACH,
    check_space,
    clamp,
    unpack_vector,
    window,
    window_scale,
)
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.stores.sqlite_matrix import Matrices, ranked
from grounded_mcp.stores.sqlite_vectors import get_space
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


def item(db: apsw.Connection, item_id: str) -> tuple[Item, tuple[Passage, ...]]:
    row = db.execute(sql.ITEM, (item_id,)).fetchone()
    if row is None:
        raise NotFound("id", f"there is no item {item_id}.", "Use an id that a recall returned.")
    return item_of(row), tuple(Passage(*passage) for passage in db.execute(sql.PASSAGES, (item_id,)))


def ids(db: apsw.Connection, after: str, limit: int) -> tuple[str, ...]:
    return tuple(row[0] for row in db.execute(sql.IDS, (after, max(0, limit))))


def find(db: apsw.Connection, kind: Kind, scope: str, key: str) -> Item | None:
    row = db.execute(sql.FIND, (kind, scope, key)).fetchone()
    return item_of(row) if row else None


def history(db: apsw.Connection, item_id: str, limit: int) -> tuple[Item, ...]:
    return tuple(item_of(row) for row in db.execute(sql.HISTORY, (item_id, clamp(limit))))


def successor(db: apsw.Connection, item_id: str) -> Item | None:
    found = rows(db, sql.SUCCESSOR, (item_id,))
    return item_of(found[0]) if found else None


def conflicts(db: apsw.Connection, ids: Sequence[str]) -> Mapping[str, tuple[Item, ...]]:
    found: dict[str, tuple[Item, ...]] = {}
    for item_id, *row in db.execute(sql.CONFLICTS, (json.dumps(ids),)):
        found[item_id] = (*found.get(item_id, ()), item_of(row))
    return found


def known(db: apsw.Connection, kind: Kind, scope: str) -> Mapping[str, Known]:
    return {
        key: Known(id, key, content, state, created_at, updated_at, json.loads(attrs))
        for id, key, content, state, created_at, updated_at, attrs in db.execute(sql.KNOWN, (kind, scope))
    }


def recent(db: apsw.Connection, where: Filter, k: int) -> tuple[Item, ...]:
    asked = {"buckets": json.dumps(_buckets(db, where)), "k": clamp(k), **_window(where)}
    return tuple(item_of(row) for row in db.execute(sql.RECENT, asked))


def tallies(db: apsw.Connection, ids: Sequence[str]) -> Mapping[str, tuple[Tally, ...]]:
    found = rows(db, sql.TALLIES, (json.dumps(list(dict.fromkeys(ids))),))
    return {
        item_id: tuple(Tally(kind, bool(supports), times, newest) for _, kind, supports, times, newest in group)
        for item_id, group in groupby(found, itemgetter(0))
    }


def proven(
    db: apsw.Connection, where: Filter, weights: Mapping[EvidenceKind, float], k: int
) -> tuple[tuple[str, ...], int]:
    asked = {
        "buckets": json.dumps(_buckets(db, where)),
        "k": max(1, clamp(k)),  # one row at least tells how many there are
        "verified": weights["verified outcome"],
        "stated": weights["stated"],
        "diagnostic": weights["diagnostic episode"],
    }
    found = rows(db, sql.PROVEN, asked)
    return tuple(id for id, _ in found[: clamp(k)]), found[0][1] if found else 0


def fetch(db: apsw.Connection, ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
    """Passages with their items; passages of one item share one ``Item``."""
    found = dict(stored_passages(rows(db, sql.FETCH, (json.dumps(ids),))))
    return {passage_id: found[passage_id] for passage_id in ids if passage_id in found}


def count(db: apsw.Connection, scopes: Collection[str] | None) -> Mapping[Kind, int]:
    """Items by kind, of some scopes or of all."""
    chosen = None if scopes is None else json.dumps(sorted(scopes))
    return {cast(Kind, kind): number for kind, number in db.execute(sql.COUNT_ITEMS, (chosen,))}


def scopes(db: apsw.Connection) -> frozenset[str]:
    return frozenset(row[0] for row in db.execute(sql.SCOPES))


def projects(db: apsw.Connection) -> tuple[Project, ...]:
    return tuple(Project(*row) for row in db.execute(sql.PROJECTS))


# --- searches ---------------------------------------------------------------------------------------------


def lexical(db: apsw.Connection, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
    """BM25 as FTS5 computes it (k1 1.2, b 0.75), negated. Statistics are those of the whole store."""
    buckets = _buckets(db, where)
    if not terms or not buckets or not clamp(k):
        return ()
    places = [str(bucket) for bucket in buckets] if where.scopes is not None else sorted(where.kinds)
    match = f"place : ({_any_of(places)}) AND tokens : ({_any_of(terms[:MAX_TERMS])})"
    found = db.execute(sql.LEXICAL, {"match": match, "k": clamp(k), **_window(where)})
    return tuple(Hit(PassageId(passage), score) for passage, score in found)


def nearest(
    db: apsw.Connection, matrices: Matrices, vector: Vector, where: Filter, k: int, space: Space | None
) -> tuple[Hit, ...]:
    """The nearest passages by exact cosine among the candidates that a matrix or a sweep of the sketches gives."""
    held = get_space(db)
    if held is None:
        return ()
    if space is not None:
        check_space(held, space)
    components = unpack_vector(vector, held.dimensions)
    buckets = _buckets(db, where)
    if not buckets or not clamp(k):
        return ()
    return ranked(db, matrices, buckets, vector, components, clamp(k), _window(where))


def timed(db: apsw.Connection, since: float, until: float, where: Filter, k: int) -> tuple[Hit, ...]:
    """Every item that is near the window by its first exchange in it, and by its others where that is not enough."""
    scale = window_scale(since, until)
    windowed, floor, ceiling = window(where)
    bounds = {"since": since, "until": until, "windowed": windowed, "floor": floor, "ceiling": ceiling}
    asked = {**bounds, "buckets": json.dumps(_buckets(db, where)), "k": clamp(k), "reach": 0.0}
    found = rows(db, sql.TIMED_INSIDE, asked)
    if len(found) < clamp(k):
        asked["reach"] = REACH * scale
        found = rows(db, sql.TIMED_NEAR, asked)
    near = {num: (inside, gap) for num, inside, gap in found}
    passages = rows(db, sql.TIMED_PASSAGES, {**asked, "items": json.dumps(list(near))})
    return timed_hits(near, passages, (since, until), scale, clamp(k))


def mentions(
    db: apsw.Connection, named: Sequence[EntityId], where: Filter, most: int
) -> Mapping[EntityId, tuple[PassageId, ...]]:
    """Who names what, within a filter."""
    buckets = _buckets(db, where)
    return sqlite_entities.mentions(db, named, buckets, _window(where), clamp(most)) if named and buckets else {}


def _buckets(db: apsw.Connection, where: Filter) -> list[int]:
    scopes = None if where.scopes is None else json.dumps(sorted(where.scopes))
    found = db.execute(sql.BUCKETS, {"kinds": json.dumps(sorted(where.kinds)), "scopes": scopes})
    return [row[0] for row in found]


def _window(where: Filter) -> dict[str, object]:
    windowed, since, until = window(where)
    return {"windowed": windowed, "since": since, "until": until}


def _any_of(terms: Sequence[str]) -> str:
    """Terms for FTS5, each quoted so that none can be syntax; a NUL would end the whole expression."""
    return " OR ".join('"' + term.replace('"', '""').replace("\0", "") + '"' for term in terms)
