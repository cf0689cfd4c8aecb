"""Which passages name which entities: kept in step with the passages, looked up from either side.

Functions over a connection inside a transaction that someone else opened. Only digests of names are kept. Knows
nothing about what an entity is, or what sharing one is worth.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import apsw

from grounded_mcp.entities import ENTITIES_VERSION, EntityId
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.indexing import named_in
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.values import PassageId

ENTITIES = "entities"
VERSION = f"entities-{ENTITIES_VERSION}"


def add(db: apsw.Connection, bucket: int, passages: Sequence[int], named: Sequence[Sequence[EntityId]]) -> None:
    """In the order of the table's key, which is how they are written fastest."""
    found = sorted((entity, id_) for id_, each in zip(passages, named, strict=True) for entity in each)
    if found:
        db.execute(sql.ADD_MENTIONS, (json.dumps(found), bucket))


def mentions(
    db: apsw.Connection, named: Sequence[EntityId], buckets: Sequence[int], window: Mapping[str, object], most: int
) -> Mapping[EntityId, tuple[PassageId, ...]]:
    found = db.execute(
        sql.MENTIONS, {"entities": json.dumps(named), "buckets": json.dumps(buckets), "k": most + 1, **window}
    )
    by_entity = {entity: tuple(map(int, passages.split())) for entity, passages in found if passages}
    return cast("Mapping[EntityId, tuple[PassageId, ...]]", by_entity)


def entities_of(db: apsw.Connection, passages: Sequence[PassageId]) -> Mapping[PassageId, tuple[EntityId, ...]]:
    found: dict[PassageId, list[EntityId]] = defaultdict(list)
    for passage, entity in db.execute(sql.ENTITIES_OF, (json.dumps(passages),)):
        found[passage].append(entity)
    return {passage: tuple(named) for passage, named in found.items()}


def is_current(db: apsw.Connection) -> bool:
    """Whether every passage was read for the entities that this version knows; so is a store without passages."""
    held = rows(db, sql.GET_META, (ENTITIES,))
    return not held or bool(held[0][0] == VERSION)


def check(db: apsw.Connection) -> Iterator[str]:
    """What is not as a repair would make it; nothing is compared while all of it is of another version."""
    stray = rows(db, sql.COUNT_STRAY_MENTIONS)[0][0]
    if stray:
        yield f"{stray} mentions of entities belong to no passage"
    if is_current(db):
        wrong = sum(sorted(named_in(body)) != json.loads(held) for _, _, body, held in db.execute(sql.ALL_MENTIONED))
        if wrong:
            yield f"the entities of {wrong} passages are not those of their text"


def rebuild(db: apsw.Connection) -> None:
    """Read every passage again, into an empty table."""
    for passage, bucket, body, _ in rows(db, sql.ALL_MENTIONED):
        add(db, bucket, (passage,), (named_in(body),))
    db.execute(sql.SET_META, (ENTITIES, VERSION))
