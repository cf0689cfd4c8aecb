"""What a memory says of itself: how much is stored, which project it is, whether vectors answer, how it is used. Pure.

Knows nothing about how it was counted or how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from grounded_mcp.values import Kind, Project, Space


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A store's own account of itself, for ``status``."""

    location: str
    engine: str
    schema: int
    items: Mapping[Kind, int]
    passages: int
    vectors: Mapping[str, int]
    """Passages by vector state: pending, ok, none."""
    space: Space | None
    bytes: int
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """How recall was used in the last ``days``: counts, milliseconds, and of the agents' client sessions how many
    called for the project's memory and then reported that it was used."""

    days: float
    recalls: int
    degraded: int
    p50_ms: float
    p95_ms: float
    opened: int
    """Recalls of which something was opened."""
    sessions: int
    called: int
    reused: int
    dropped: int
    """Events that were never stored, of all time."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the memory is: which project and why, what is stored, whether vectors answer."""

    project: Project
    store: StoreInfo
    embedder: str
    """off, idle (not asked for yet), loading, ready or failed."""
    model: str | None
    problem: str | None
    """What is wrong and what to do about it; None when all is well."""
    sources: tuple[str, ...]
    """Where the settings came from, in the order they were applied."""
    usage: Usage | None = None
    """None where telemetry is off."""
    here: Mapping[Kind, int] = field(default_factory=dict)
    """Of what is stored, the items by kind that a recall in this project admits."""


class NotedSession(NamedTuple):
    """A client session: when it was first and last heard of."""

    id: str
    client: str
    first_at: float
    last_at: float


class NotedRecall(NamedTuple):
    """What one recall came to: ``events.Recalled`` in counters. ``opened``: how many of its items were opened since;
    ``reused``: what was reported about it, None where nothing was."""

    id: str
    session: str
    at: float
    tool: str
    project: str
    intent: str
    asked: str
    mode: str
    degraded: str
    embed_ms: float
    db_ms: float
    rerank_ms: float
    total_ms: float
    results: int
    opened: int
    reused: bool | None


class NotedItem(NamedTuple):
    """An item, and how many recalls returned it, led to its being opened, and were reported as reused."""

    id: str
    kind: Kind
    recalled: int
    opened: int
    reused: int


class RecalledItem(NamedTuple):
    """An item at its rank, from 1, in what a recall returned."""

    recall: str
    rank: int
    item: str
    kind: Kind
    opened: bool


@dataclass(frozen=True, slots=True)
class Noted:
    """Telemetry since a time, sessions and recalls oldest first, items by reuse. ``dropped``: events that were never
    stored, of all time."""

    sessions: tuple[NotedSession, ...]
    recalls: tuple[NotedRecall, ...]
    items: tuple[NotedItem, ...]
    dropped: int
