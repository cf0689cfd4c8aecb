"""What goes on around a memory, told to listeners; and what telemetry kept of it, looked at again.

Knows nothing about how it is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from grounded_mcp import events
from grounded_mcp.accounts import Usage
from grounded_mcp.dossier import ProjectMemory
from grounded_mcp.errors import NotFound
from grounded_mcp.events import Caller, Listener
from grounded_mcp.knowledge import graph, reuse
from grounded_mcp.listeners.telemetry import DAY, Telemetry
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Recall
from grounded_mcp.when import parse_time

SINCE = "30d"
"""How far back statistics look unless they are told."""

STATUS_DAYS = 7.0
"""How far back the status looks."""


class Journal:
    """One memory's events. ``telemetry`` None: nothing is kept. A caller that is None is nobody: nobody is told.

    Safe to call from any thread. What tells raises nothing.
    """

    def __init__(
        self,
        store: Store,
        project: str,
        telemetry: Telemetry | None,
        listeners: tuple[Listener, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._project = project
        self._telemetry = telemetry
        self._listeners: tuple[Listener, ...] = (*listeners, *((telemetry,) if telemetry else ()))
        self._clock = clock

    def met(self, caller: Caller) -> None:
        """A client session was offered the tools: it counts, whether or not it ever calls one."""
        events.tell(self._listeners, events.Met(self._clock(), caller, self._project))

    def recalled(self, found: Recall, caller: Caller | None, intent: str = "") -> None:
        if caller is not None:
            events.tell(self._listeners, events.recalled(found, caller, self._project, intent))

    def visited(self, recall_id: str, caller: Caller | None, items: tuple[str, ...]) -> None:
        """An answer was given that nothing was searched for: it counts as a recall without a mode."""
        if caller is not None:
            event = events.Recalled(self._clock(), caller, recall_id, self._project, items=items)
            events.tell(self._listeners, event)

    def gave(self, found: ProjectMemory, caller: Caller | None) -> None:
        """A project's memory was given, with or without a search."""
        if found.recall is not None:
            self.recalled(found.recall, caller, found.intent or "")
        else:
            self.visited(found.id, caller, tuple(script.item.id for script in found.scripts))

    def opened(self, item_id: str, caller: Caller | None) -> None:
        if caller is not None:
            events.tell(self._listeners, events.Opened(self._clock(), caller, item_id))

    def report(self, reused: bool, recall_id: str | None, caller: Caller) -> str | None:
        """The recall that it was noted for: ``recall_id``, or the latest of the caller's session.

        None where there is none, or nothing is kept. Raises: NotFound for an unknown ``recall_id``; StoreError.
        """
        if self._telemetry is None:
            return None
        if recall_id and not self._telemetry.has(recall_id):
            remedy = "Give the recall_id of an answer's meta, or leave it out for the previous recall of this session."
            raise NotFound("recall_id", "there was no such recall.", remedy)
        recall = recall_id or self._telemetry.latest(caller.session)
        if recall:
            events.tell(self._listeners, events.Reported(self._clock(), caller, recall, reused))
        return recall or None

    def stats(self, since: object = None, *, all_projects: bool = False, top: int = 10) -> reuse.Stats:
        """``since``: a date, a time or an age; None: ``SINCE``. Raises: InputError; StoreError."""
        now = self._clock()
        begin = self._begin(since, now)
        dropped = self._telemetry.flush() if self._telemetry else 0
        noted = self._store.noted(begin, project=self._about(all_projects), top=top)
        return reuse.stats(noted, begin, now, dropped=dropped)

    def graph(self, since: object = None, *, all_projects: bool = False, recalls: int = 100) -> graph.Graph:
        """As ``stats``, of the latest ``recalls``. Raises: InputError; StoreError."""
        begin = self._begin(since, self._clock())
        if self._telemetry is not None:
            self._telemetry.flush()
        return graph.graph(self._store, begin, recalls, self._about(all_projects))

    def usage(self) -> Usage | None:
        """The last ``STATUS_DAYS`` in few figures; None where nothing is kept. Raises: StoreError."""
        if self._telemetry is None:
            return None
        dropped = self._telemetry.flush()
        noted = self._store.noted(self._clock() - STATUS_DAYS * DAY, project=self._project)
        return reuse.usage(noted, STATUS_DAYS, dropped=dropped)

    def close(self) -> None:
        """Store what waits, within a bounded time."""
        if self._telemetry is not None:
            self._telemetry.close()

    def _about(self, all_projects: bool) -> str | None:
        return None if all_projects else self._project

    def _begin(self, since: object, now: float) -> float:
        return parse_time(SINCE if since is None else since, field="since", now=now)
