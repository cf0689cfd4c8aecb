"""Reading and searching: rows back into values, and the two lanes' searches.

Functions over a connection inside a transaction that someone else opened. FTS5's signs and distances end here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from grounded_mcp.errors import NotFound
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.base import Known
from grounded_mcp.stores.rules import MAX_TERMS, check_space, clamp, unpack_vector, window
from grounded_mcp.stores.sqlite_matrix import Matrices, ranked
from grounded_mcp.stores.sqlite_vectors import get_space
from grounded_mcp.values import (
    Filter,
    Hit,
    Item,
    Kind,
    Passage,
    PassageId,
    Project,
    Space,
    StoredPassage,
    Vector,
)

# --- rows -------------------------------------------------------------------------------------------------


def item(db: apsw.Connection, item_id: str) -> tuple[Item, tuple[Passage, ...]]:
    row = db.execute(sql.ITEM, (item_id,)).fetchone()
    if row is None:
        raise NotFound("id", f"there is no item {item_id}.", "Use an id that a recall returned.")
    return _item(row), tuple(Passage(*passage) for passage in db.execute(sql.PASSAGES, (item_id,)))


def find(db: apsw.Connection, kind: Kind, scope: str, key: str) -> Item | None:
    row = db.execute(sql.FIND, (kind, scope, key)).fetchone()
    return _item(row) if row else None


def history(db: apsw.Connection, item_id: str, limit: int) -> tuple[Item, ...]:
    return tuple(_item(row) for row in db.execute(sql.HISTORY, (item_id, clamp(limit))))


def known(db: apsw.Connection, kind: Kind, scope: str) -> Mapping[str, Known]:
    return {
        key: Known(id, key, content, state, created_at, json.loads(attrs))
        for id, key, content, state, created_at, attrs in db.execute(sql.KNOWN, (kind, scope))
    }


def fetch(db: apsw.Connection, ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
    """Passages with their items; passages of one item share one ``Item``."""
    found: dict[PassageId, StoredPassage] = {}
    items: dict[str, Item] = {}
    for passage_id, seq, body, heading, start, end, tokens, count, size, *row in db.execute(
        sql.FETCH, (json.dumps(ids),)
    ):
        owner = items.get(row[0])
        if owner is None:
            owner = items[row[0]] = _item(row)
        found[passage_id] = StoredPassage(
            passage_id, Passage(seq, body, heading, start, end), owner, count, size, tokens
        )
    return {passage_id: found[passage_id] for passage_id in ids if passage_id in found}


def scopes(db: apsw.Connection) -> frozenset[str]:
    return frozenset(row[0] for row in db.execute(sql.SCOPES))


def projects(db: apsw.Connection) -> tuple[Project, ...]:
    return tuple(Project(*row) for row in db.execute(sql.PROJECTS))


def _item(row: Sequence[Any]) -> Item:
    """In the order of ``sql._ITEM``."""
    (id, kind, scope, title, key, body, state, origin, importance, pinned, created, updated, content, attrs) = row
    return Item(
        id=id,
        kind=kind,
        scope=scope,
        title=title,
        key=key,
        body=body,
        state=state,
        origin=origin,
        importance=importance,
        pinned=bool(pinned),
        created_at=created,
        updated_at=updated,
        content_hash=content,
        attrs=json.loads(attrs),
    )


# --- searches ---------------------------------------------------------------------------------------------


def lexical(db: apsw.Connection, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
    """BM25 as FTS5 computes it (k1 1.2, b 0.75), negated. Statistics are those of the whole store."""
    buckets = _buckets(db, where)
    if not terms or not buckets or not clamp(k):
        return ()
    places = [str(bucket) for bucket in buckets] if where.scopes is not None else sorted(where.kinds)
    match = f"place : ({_any_of(places)}) AND tokens : ({_any_of(terms[:MAX_TERMS])})"
    rows = db.execute(sql.LEXICAL, {"match": match, "k": clamp(k), **_window(where)})
    return tuple(Hit(PassageId(passage), score) for passage, score in rows)


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


def _buckets(db: apsw.Connection, where: Filter) -> list[int]:
    scopes = None if where.scopes is None else json.dumps(sorted(where.scopes))
    rows = db.execute(sql.BUCKETS, {"kinds": json.dumps(sorted(where.kinds)), "scopes": scopes})
    return [row[0] for row in rows]


def _window(where: Filter) -> dict[str, object]:
    windowed, since, until = window(where)
    return {"windowed": windowed, "since": since, "until": until}


def _any_of(terms: Sequence[str]) -> str:
    """Terms for FTS5, each quoted so that none can be syntax; a NUL would end the whole expression."""
    return " OR ".join('"' + term.replace('"', '""').replace("\0", "") + '"' for term in terms)
