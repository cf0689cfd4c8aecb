"""What recalls came to: counters by client session, and which items they returned.

Functions over a connection inside a transaction that someone else opened. Knows nothing about what the counts mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import apsw

from grounded_mcp.events import Caller, Event, Met, Opened, Recalled, Reported
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.base import Noted, NotedItem, NotedRecall, NotedSession, RecalledItem
from grounded_mcp.stores.sqlite_connection import rows

DROPPED = "telemetry_dropped"


def note(db: apsw.Connection, happened: Sequence[Event], keep_from: float, dropped: int) -> None:
    for event in happened:
        _NOTE[type(event)](db, event)
    db.execute(sql.PRUNE_RECALLS, (keep_from,))
    db.execute(sql.PRUNE_SESSIONS, (keep_from,))
    if dropped:
        db.execute(sql.COUNT_UP, (DROPPED, dropped))


def _met(db: apsw.Connection, event: Met) -> None:
    _session(db, event.caller, event.at, event.project)


def _recalled(db: apsw.Connection, event: Recalled) -> None:
    row = (
        *(
            event.id,
            _session(db, event.caller, event.at, event.project),
            event.at,
            event.caller.tool,
            event.project,
            event.intent,
        ),
        *(event.asked, event.mode, event.degraded, event.embed_ms, event.db_ms, event.rerank_ms, event.total_ms),
        *(len(event.items), event.query),
    )
    for (recall,) in rows(db, sql.ADD_RECALL, row):
        db.execute(sql.ADD_RECALL_ITEMS, (recall, json.dumps(event.items)))
        if event.query is not None and db.changes() < len(event.items):
            db.execute(sql.DROP_QUERY, (recall,))  # something of the answer was forgotten meanwhile


def _opened(db: apsw.Connection, event: Opened) -> None:
    _session(db, event.caller, event.at)
    db.execute(sql.NOTE_OPENED, (event.caller.session, event.item, event.at))


def _reported(db: apsw.Connection, event: Reported) -> None:
    _session(db, event.caller, event.at)
    db.execute(sql.NOTE_REUSE, (int(event.reused), event.recall))


_NOTE: Mapping[type, Callable[[apsw.Connection, Any], None]] = {
    Met: _met,
    Recalled: _recalled,
    Opened: _opened,
    Reported: _reported,
}


def _session(db: apsw.Connection, caller: Caller, at: float, project: str = "") -> int:
    return int(rows(db, sql.MEET_SESSION, (caller.session, caller.name, project, at))[0][0])


def forget_queries(db: apsw.Connection, ids: Sequence[str]) -> None:
    """The words of questions that these items answered go with them; the rows that name them go by themselves."""
    db.execute(sql.DROP_QUERIES, (json.dumps(ids),))


def noted(db: apsw.Connection, since: float, project: str | None, top: int) -> Noted:
    window = {"since": since, "project": project, "top": top}
    dropped = rows(db, sql.GET_META, (DROPPED,))
    return Noted(
        sessions=tuple(NotedSession(*row) for row in db.execute(sql.NOTED_SESSIONS, window)),
        recalls=tuple(
            NotedRecall(*row)._replace(reused=None if row[-1] is None else bool(row[-1]))
            for row in db.execute(sql.NOTED_RECALLS, window)
        ),
        items=tuple(NotedItem(*row) for row in db.execute(sql.NOTED_ITEMS, window)),
        dropped=int(dropped[0][0]) if dropped else 0,
    )


def find(db: apsw.Connection, recall_id: str, session: str, projects: Collection[str] | None) -> str | None:
    among = None if projects is None else json.dumps(sorted(projects))
    found = (
        rows(db, sql.FIND_RECALL, (recall_id, among)) if recall_id else rows(db, sql.LATEST_RECALL, (session, among))
    )
    return str(found[0][0]) if found else None


def recalled_items(db: apsw.Connection, recall_ids: Sequence[str]) -> tuple[RecalledItem, ...]:
    return tuple(
        RecalledItem(recall, rank, item, kind, bool(opened))
        for recall, rank, item, kind, opened in db.execute(sql.RECALLED_ITEMS, (json.dumps(recall_ids),))
    )
