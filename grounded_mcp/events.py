"""What happened, as frozen records, and how it is told to whoever listens.

A listener is a callable; one that fails is logged and forgotten: what it was told about has happened all the same.
Knows nothing about who listens or what becomes of a record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grounded_mcp.values import Recall

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a client session, by an id that means nothing outside this store; the client's name; the tool."""

    session: str
    name: str = ""
    tool: str = ""


COMMAND_LINE = Caller("cli", "cli")
"""A person at a terminal: one session, which is no agent's and is left out of what is said about agents."""


@dataclass(frozen=True, slots=True)
class Met:
    """A client session was offered the tools of a project's memory, whether or not it ever calls one."""

    at: float
    caller: Caller
    project: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """A question from a project (its key) was answered. ``items``: the ids of what came back, best first. Times in
    milliseconds.

    ``asked`` and ``mode``: the mode asked for and the one served, empty where nothing was searched for. ``degraded``:
    the stable code of the reason, empty where there is none. ``query`` is for listeners in this process only.
    """

    at: float
    caller: Caller
    id: str
    project: str
    intent: str = ""
    asked: str = ""
    mode: str = ""
    degraded: str = ""
    embed_ms: float = 0.0
    db_ms: float = 0.0
    rerank_ms: float = 0.0
    total_ms: float = 0.0
    items: tuple[str, ...] = ()
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The full text of an item was read: a weak sign that the recall which named it was of use."""

    at: float
    caller: Caller
    item: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A caller says whether what a recall (its id) returned was used."""

    at: float
    caller: Caller
    recall: str
    reused: bool


Event = Met | Recalled | Opened | Reported
Listener = Callable[[Event], None]


def recalled(found: Recall, caller: Caller, project: str, intent: str = "") -> Recalled:
    """The record of a finished recall."""
    stats = found.stats
    return Recalled(
        at=found.query.now,
        caller=caller,
        id=found.id,
        project=project,
        intent=intent,
        asked=found.query.mode,
        mode=found.mode,
        degraded=found.degradation.code if found.degradation else "",
        embed_ms=stats.embed_ms,
        db_ms=stats.db_ms,
        rerank_ms=stats.rerank_ms,
        total_ms=stats.total_ms,
        items=tuple(each.found.item.id for each in found.candidates if each.found),
        query=found.query.text,
    )


def tell(listeners: Iterable[Listener], event: Event) -> None:
    """Tell every listener. Raises nothing."""
    for listener in listeners:
        try:
            listener(event)
        except Exception:
            logger.exception("a listener failed at %s", type(event).__name__)
