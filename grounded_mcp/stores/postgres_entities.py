"""Which passages name which entities: kept in step with the passages, looked up from either side.

Functions over a connection inside a transaction that someone else opened. Only digests of names are kept. Knows
nothing about what an entity is, or what sharing one is worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grounded_mcp.entities import ENTITIES_VERSION, EntityId
from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.indexing import named_in
from grounded_mcp.stores.postgres_connection import Connection, rows, run
from grounded_mcp.values import PassageId

ENTITIES = "entities"
VERSION = f"entities-{ENTITIES_VERSION}"
PAGE = 500
"""Passages that a check or a repair reads at once."""


def add(db: Connection, bucket: int, passages: Sequence[int], named: Sequence[Sequence[EntityId]]) -> None:
    """In the order of the table's key, which is how they are written fastest."""
    found = sorted((entity, id_) for id_, each in zip(passages, named, strict=True) for entity in each)
    if found:
        run(db, sql.ADD_MENTIONS, (bucket, [entity for entity, _ in found], [passage for _, passage in found]))


def mentions(
    db: Connection,
    named: Sequence[EntityId],
    buckets: Sequence[int],
    bounds: dict[str, object] | None,
    most: int,
) -> Mapping[EntityId, tuple[PassageId, ...]]:
    asked = {"entities": list(named), "buckets": list(buckets), "k": most + 1, **(bounds or {})}
    found = rows(db, sql.MENTIONS[bounds is not None], asked)
    return {entity: tuple(passages) for entity, passages in found if passages}


def entities_of(db: Connection, passages: Sequence[PassageId]) -> Mapping[PassageId, tuple[EntityId, ...]]:
    found: dict[PassageId, list[EntityId]] = defaultdict(list)
    for passage, entity in rows(db, sql.ENTITIES_OF, (list(passages),)):
        found[passage].append(entity)
    return {passage: tuple(named) for passage, named in found.items()}


def is_current(db: Connection) -> bool:
    """Whether every passage was read for the entities that this version knows; so is a store without passages."""
    held = rows(db, sql.GET_META, (ENTITIES,))
    return not held or bool(held[0][0] == VERSION)


def check(db: Connection) -> Iterator[str]:
    """What is not as a repair would make it; nothing is compared while all of it is of another version."""
    stray = rows(db, sql.COUNT_STRAY_MENTIONS)[0][0]
    if stray:
        yield f"{stray} mentions of entities belong to no passage"
    if is_current(db):
        wrong = sum(sorted(named_in(body)) != held for _, _, body, held in everything(db))
        if wrong:
            yield f"the entities of {wrong} passages are not those of their text"


def rebuild(db: Connection) -> None:
    """Read every passage again."""
    run(db, "DELETE FROM mention")
    for passage, bucket, body, _ in everything(db):
        add(db, bucket, (passage,), (named_in(body),))
    run(db, sql.SET_META, (ENTITIES, VERSION))


def everything(db: Connection) -> Iterator[tuple[int, int, str, list[int]]]:
    """Every passage: id, bucket, body and the entities it is stored under, in order."""
    last = 0
    while page := rows(db, sql.ALL_MENTIONED, (last, PAGE)):
        yield from page
        last = page[-1][0]
