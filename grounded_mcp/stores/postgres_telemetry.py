"""What recalls came to: counters by client session, and which items they returned.

Functions over a connection inside a transaction that someone else opened. Knows nothing about what the counts mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from grounded_mcp.events import Caller, Event, Met, Opened, Recalled, Reported
from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.base import Noted, NotedItem, NotedRecall, NotedSession, RecalledItem
from grounded_mcp.stores.postgres_connection import Connection, rows, run

DROPPED = "telemetry_dropped"

MEET_SESSION = """
INSERT INTO client_session AS held (id, client, project, first_at, last_at)
VALUES (%(id)s, %(client)s, %(project)s, %(at)s, %(at)s)
ON CONFLICT (id) DO UPDATE SET last_at = greatest(held.last_at, excluded.last_at),
    first_at = least(held.first_at, excluded.first_at),
    client = CASE WHEN excluded.client = '' THEN held.client ELSE excluded.client END,
    project = CASE WHEN excluded.project = '' THEN held.project ELSE excluded.project END
RETURNING num"""
ADD_RECALL = """
INSERT INTO recall (id, session, at, tool, project, intent, asked, mode, degraded, embed_ms, db_ms, rerank_ms,
    total_ms, results, query)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING num"""
ADD_RECALL_ITEMS = """
INSERT INTO recall_item (recall, rank, item)
SELECT %s, each.rank, item.num FROM unnest(%s::text[]) WITH ORDINALITY AS each (id, rank)
JOIN item ON item.id = each.id COLLATE "C" """
NOTE_OPENED = """
UPDATE recall_item SET opened_at = coalesce(opened_at, %(at)s)
WHERE item = (SELECT num FROM item WHERE id = %(item)s) AND recall = (
    SELECT recall.num FROM recall JOIN client_session ON client_session.num = recall.session
    WHERE client_session.id = %(session)s AND EXISTS (
        SELECT 1 FROM recall_item JOIN item ON item.num = recall_item.item
        WHERE recall_item.recall = recall.num AND item.id = %(item)s)
    ORDER BY recall.at DESC, recall.num DESC LIMIT 1)"""
NOTE_REUSE = "UPDATE recall SET reused = %s WHERE id = %s"
PRUNE_RECALLS = "DELETE FROM recall WHERE at < %s"
PRUNE_SESSIONS = "DELETE FROM client_session WHERE last_at < %s"
COUNT_UP = """
INSERT INTO meta AS held (name, value) VALUES (%s, %s::bigint::text)
ON CONFLICT (name) DO UPDATE SET value = (held.value::bigint + excluded.value::bigint)::text"""
DROP_QUERY = "UPDATE recall SET query = NULL WHERE num = %s"
DROP_QUERIES = """
UPDATE recall SET query = NULL WHERE query IS NOT NULL AND num IN (
    SELECT recall FROM recall_item JOIN item ON item.num = recall_item.item WHERE item.id = ANY(%s::text[]))"""

_PROJECT = "(%(project)s::text IS NULL OR {} = %(project)s::text)"
NOTED_SESSIONS = f"""
SELECT id, client, first_at, last_at FROM client_session WHERE last_at >= %(since)s AND (
    {_PROJECT.format("project")}
    OR EXISTS (SELECT 1 FROM recall WHERE session = client_session.num AND recall.project = %(project)s::text))
ORDER BY first_at, num"""  # noqa: S608
NOTED_RECALLS = f"""
SELECT recall.id, client_session.id, recall.at, tool, recall.project, intent, asked, mode, degraded,
    embed_ms, db_ms, rerank_ms, total_ms, results,
    (SELECT count(opened_at) FROM recall_item WHERE recall_item.recall = recall.num), reused
FROM recall JOIN client_session ON client_session.num = recall.session
WHERE recall.at >= %(since)s AND {_PROJECT.format("recall.project")} ORDER BY recall.at, recall.num"""  # noqa: S608
NOTED_ITEMS = f"""
SELECT item.id, bucket.kind, count(DISTINCT recall.num) AS recalled,
    count(DISTINCT recall.num) FILTER (WHERE recall_item.opened_at IS NOT NULL) AS opened,
    count(DISTINCT recall.num) FILTER (WHERE recall.reused) AS reused
FROM recall JOIN recall_item ON recall_item.recall = recall.num
    JOIN item ON item.num = recall_item.item JOIN bucket ON bucket.id = item.bucket
WHERE recall.at >= %(since)s AND {_PROJECT.format("recall.project")} GROUP BY item.num, bucket.kind
ORDER BY 5 DESC, 4 DESC, 3 DESC, item.id LIMIT %(top)s"""  # noqa: S608
_OF_PROJECTS = "(%(any)s OR recall.project = ANY(%(projects)s::text[]))"
FIND_RECALL = f"SELECT id FROM recall WHERE id = %(id)s AND {_OF_PROJECTS}"  # noqa: S608
LATEST_RECALL = f"""
SELECT recall.id FROM recall JOIN client_session ON client_session.num = recall.session
WHERE client_session.id = %(session)s AND {_OF_PROJECTS}
ORDER BY recall.at DESC, recall.num DESC LIMIT 1"""  # noqa: S608
RECALLED_ITEMS = """
SELECT recall.id, rank, item.id, bucket.kind, opened_at IS NOT NULL
FROM recall JOIN recall_item ON recall_item.recall = recall.num
    JOIN item ON item.num = recall_item.item JOIN bucket ON bucket.id = item.bucket
WHERE recall.id = ANY(%s::text[]) ORDER BY recall.at, recall.num, rank"""


def note(db: Connection, happened: Sequence[Event], keep_from: float, dropped: int) -> None:
    for event in happened:
        _NOTE[type(event)](db, event)
    run(db, PRUNE_RECALLS, (keep_from,))
    run(db, PRUNE_SESSIONS, (keep_from,))
    if dropped:
        run(db, COUNT_UP, (DROPPED, dropped))


def _met(db: Connection, event: Met) -> None:
    _session(db, event.caller, event.at, event.project)


def _recalled(db: Connection, event: Recalled) -> None:
    session = _session(db, event.caller, event.at, event.project)
    row = (
        *(event.id, session, event.at, event.caller.tool, event.project, event.intent),
        *(event.asked, event.mode, event.degraded, event.embed_ms, event.db_ms, event.rerank_ms, event.total_ms),
        *(len(event.items), event.query),
    )
    for (recall,) in rows(db, ADD_RECALL, row):
        kept = run(db, ADD_RECALL_ITEMS, (recall, list(event.items)))
        if event.query is not None and kept < len(event.items):
            run(db, DROP_QUERY, (recall,))  # something of the answer was forgotten meanwhile


def _opened(db: Connection, event: Opened) -> None:
    _session(db, event.caller, event.at)
    run(db, NOTE_OPENED, {"session": event.caller.session, "item": event.item, "at": event.at})


def _reported(db: Connection, event: Reported) -> None:
    _session(db, event.caller, event.at)
    run(db, NOTE_REUSE, (event.reused, event.recall))


_NOTE: Mapping[type, Callable[[Connection, Any], None]] = {
    Met: _met,
    Recalled: _recalled,
    Opened: _opened,
    Reported: _reported,
}


def _session(db: Connection, caller: Caller, at: float, project: str = "") -> int:
    given = {"id": caller.session, "client": caller.name, "project": project, "at": float(at)}
    return int(rows(db, MEET_SESSION, given)[0][0])


def forget_queries(db: Connection, ids: Sequence[str]) -> None:
    """The words of questions that these items answered go with them; the rows that name them go by themselves."""
    run(db, DROP_QUERIES, (list(ids),))


def noted(db: Connection, since: float, project: str | None, top: int) -> Noted:
    asked = {"since": float(since), "project": project, "top": top}
    dropped = rows(db, sql.GET_META, (DROPPED,))
    return Noted(
        sessions=tuple(NotedSession(*row) for row in rows(db, NOTED_SESSIONS, asked)),
        recalls=tuple(NotedRecall(*row) for row in rows(db, NOTED_RECALLS, asked)),
        items=tuple(NotedItem(*row) for row in rows(db, NOTED_ITEMS, asked)),
        dropped=int(dropped[0][0]) if dropped else 0,
    )


def find(db: Connection, recall_id: str, session: str, projects: Collection[str] | None) -> str | None:
    asked = {"id": recall_id, "session": session, "any": projects is None, "projects": sorted(projects or ())}
    found = rows(db, FIND_RECALL if recall_id else LATEST_RECALL, asked)
    return str(found[0][0]) if found else None


def recalled_items(db: Connection, recall_ids: Sequence[str]) -> tuple[RecalledItem, ...]:
    return tuple(RecalledItem(*row) for row in rows(db, RECALLED_ITEMS, (list(recall_ids),)))
