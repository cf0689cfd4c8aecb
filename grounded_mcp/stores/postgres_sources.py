"""Where what is stored came from: how far sources were read, the evidence behind items, and what must not come back.

Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.postgres_connection import Connection, rows, run, run_many
from grounded_mcp.values import Evidence, Record


def checkpoints(db: Connection, prefix: str) -> Mapping[str, str]:
    return dict(rows(db, sql.CHECKPOINTS, (prefix,)))


def note_checkpoints(db: Connection, states: Mapping[str, str]) -> None:
    run_many(db, sql.SET_CHECKPOINT, sorted(states.items()))


def evidence(db: Connection, item_id: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(session, place, supports, kind, at, note)
        for session, place, supports, kind, note, at in rows(db, sql.EVIDENCE, (item_id,))
    )


def add_evidence(db: Connection, records: Iterable[Record]) -> None:
    found = [(record.item.id, each) for record in records for each in record.evidence]
    run_many(
        db,
        sql.ADD_EVIDENCE,
        [(each.session, each.place, each.supports, each.kind, each.note, each.at, item_id) for item_id, each in found],
    )


def retract(db: Connection, session: str, place: int) -> Sequence[int]:
    """Take back what a conversation was evidence for, from an exchange on. Returns the items it was about."""
    about = [num for (num,) in rows(db, sql.EVIDENCE_ITEMS, (session, place))]
    if about:
        run(db, sql.RETRACT_EVIDENCE, (session, place))
    return about


def unfounded(db: Connection, nums: Iterable[int]) -> Sequence[int]:
    """Those of the items that stood on evidence alone and have none left."""
    about = sorted(set(nums))
    return [num for (num,) in rows(db, sql.UNFOUNDED, (about,))] if about else []


def add_conflicts(db: Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Link pairs of items both ways; those that are not there are passed over."""
    run_many(db, sql.ADD_CONFLICT, sorted({each for one, other in pairs for each in ((one, other), (other, one))}))


def bury(db: Connection, digests: Iterable[str], at: float) -> None:
    run_many(db, sql.BURY, [(digest, at) for digest in sorted(set(digests))])


def buried(db: Connection) -> frozenset[str]:
    return frozenset(digest for (digest,) in rows(db, sql.BURIED))
