"""Where what is stored came from: how far sources were read, the evidence behind items, and what must not come back.

Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import apsw

from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.values import Evidence


def checkpoints(db: apsw.Connection, prefix: str) -> Mapping[str, str]:
    return dict(rows(db, sql.CHECKPOINTS, (prefix, prefix)))


def note_checkpoints(db: apsw.Connection, states: Mapping[str, str]) -> None:
    db.executemany(sql.SET_CHECKPOINT, states.items())


def evidence(db: apsw.Connection, item_id: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(session, place, bool(supports), kind, at, note)
        for session, place, supports, kind, note, at in db.execute(sql.EVIDENCE, (item_id,))
    )


def add_evidence(db: apsw.Connection, item_id: str, found: Iterable[Evidence]) -> None:
    db.executemany(
        sql.ADD_EVIDENCE,
        [(item_id, each.session, each.place, int(each.supports), each.kind, each.note, each.at) for each in found],
    )


def retract(db: apsw.Connection, session: str, place: int) -> Sequence[int]:
    """Take back what a conversation was evidence for, from an exchange on. Returns the items it was about."""
    about = [num for (num,) in rows(db, sql.EVIDENCE_ITEMS, (session, place))]
    db.execute(sql.RETRACT_EVIDENCE, (session, place))
    return about


def drop_unfounded(db: apsw.Connection, nums: Iterable[int]) -> None:
    """Delete those of the items that stood on evidence alone and have none left."""
    db.execute(sql.DROP_UNFOUNDED, (json.dumps(sorted(set(nums))),))


def add_conflicts(db: apsw.Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Link pairs of items both ways; those that are not there are passed over."""
    db.executemany(sql.ADD_CONFLICT, [each for one, other in pairs for each in ((one, other), (other, one))])


def bury(db: apsw.Connection, digests: Iterable[str], at: float) -> None:
    db.executemany(sql.BURY, [(digest, at) for digest in digests])


def buried(db: apsw.Connection) -> frozenset[str]:
    return frozenset(digest for (digest,) in db.execute(sql.BURIED))
