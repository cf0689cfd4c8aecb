"""The memory graph: client sessions, their recalls, the items these returned, and the evidence behind those.

Of stored text it holds the notes of evidence only. Knows nothing about how it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grounded_mcp.stores.base import NotedRecall, NotedSession, RecalledItem, Store
from grounded_mcp.values import Evidence


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by id; the edges are the ids in them: a recall names its session, a recalled item both of its ends, and
    evidence the conversation that it is from."""

    sessions: tuple[NotedSession, ...]
    recalls: tuple[NotedRecall, ...]
    items: tuple[RecalledItem, ...]
    evidence: Mapping[str, tuple[Evidence, ...]]
    """By item, of those that have any."""


def graph(store: Store, since: float, recalls: int, project: str | None = None) -> Graph:
    """The latest ``recalls`` recalls since a time, of one project (its key) or of all, and everything within three
    steps of them. Raises: StoreError."""
    noted = store.noted(since, project=project)
    latest = noted.recalls[-recalls:] if recalls > 0 else ()
    named = {each.session for each in latest}
    items = store.recalled_items([each.id for each in latest])
    evidence = {item: store.evidence(item) for item in dict.fromkeys(each.item for each in items)}
    return Graph(
        sessions=tuple(each for each in noted.sessions if each.id in named),
        recalls=latest,
        items=items,
        evidence={item: found for item, found in evidence.items() if found},
    )
