"""What a memory says of itself: how much is stored, which project it is, whether vectors answer, how it is used. Pure.

Knows nothing about how it was counted or how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
