"""Telemetry on its way from one store to another: what was noted, told again as the events it came from.

Knows nothing about what the counters mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from grounded_mcp.events import Caller, Event, Met, Opened, Recalled, Reported
from grounded_mcp.stores.base import NotedRecall, RecalledItem, Store
from grounded_mcp.transfer import lines

PAGE = 200
_WORDS = ("project", "intent", "asked", "mode", "degraded")
_TIMES = ("embed_ms", "db_ms", "rerank_ms", "total_ms")


def rows(store: Store, scopes: frozenset[str] | None) -> Iterator[lines.Row]:
    """Client sessions, then recalls, oldest first."""
    for project in store.projects():
        if scopes is not None and project.scope not in scopes:
            continue
        found = store.noted(float("-inf"), project=project.key)
        for session in found.sessions:
            yield {"type": "session", **session._asdict(), "project": project.key}
        clients = {session.id: session.client for session in found.sessions}
        for at in range(0, len(found.recalls), PAGE):
            page = found.recalls[at : at + PAGE]
            items = _by_recall(store.recalled_items([recall.id for recall in page]))
            for recall in page:
                yield _recall_row(recall, clients.get(recall.session, ""), items[recall.id])


def _by_recall(items: Iterable[RecalledItem]) -> defaultdict[str, list[RecalledItem]]:
    found: defaultdict[str, list[RecalledItem]] = defaultdict(list)
    for each in items:
        found[each.recall].append(each)
    return found


def _recall_row(recall: NotedRecall, client: str, items: list[RecalledItem]) -> lines.Row:
    told = {name: value for name, value in recall._asdict().items() if name not in ("results", "opened")}
    return {
        "type": "recall",
        **told,
        "client": client,
        "items": [each.item for each in sorted(items, key=lambda each: each.rank)],
        "opened": [each.item for each in items if each.opened],
    }


def events(row: lines.Row) -> Iterator[Event]:
    """What a row was noted from. Raises: InputError naming the field."""
    client = lines.text(row, "client", lines.MAX_NAME, empty=True)
    if row["type"] == "session":
        caller = Caller(lines.text(row, "id", lines.MAX_NAME), client)
        project = lines.text(row, "project", lines.MAX_NAME)
        yield from (Met(lines.number(row, name), caller, project) for name in ("first_at", "last_at"))
        return
    caller = Caller(lines.text(row, "session", lines.MAX_NAME), client, lines.text(row, "tool", 64, empty=True))
    at, recall = lines.number(row, "at"), lines.text(row, "id", lines.MAX_NAME)
    told: dict[str, Any] = {name: lines.text(row, name, lines.MAX_NAME, empty=True) for name in _WORDS}
    told |= {name: lines.number(row, name, 0.0) for name in _TIMES}
    yield Recalled(at, caller, recall, **told, items=tuple(lines.texts(row, "items")))
    yield from (Opened(at, caller, item) for item in lines.texts(row, "opened"))
    if isinstance(row.get("reused"), bool):
        yield Reported(at, caller, recall, row["reused"])
