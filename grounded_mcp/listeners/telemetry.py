"""Telemetry into the store of this machine, and nowhere else: counters of what was recalled and what came of it.

Being told costs a recall an entry in a queue; a thread stores it soon after. A store that is busy, full or read-only
loses telemetry, never a recall. Knows nothing about what is made of the counters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from grounded_mcp.errors import RedactionError, StoreBusy, StoreError
from grounded_mcp.events import Event, Met, Recalled
from grounded_mcp.stores.base import Store

logger = logging.getLogger(__name__)

FLUSH_S = 0.5
"""From an event to its being stored: a burst of recalls is one transaction."""

CLOSE_S = 1.0
"""How long closing waits for what is queued: a server has that long after its client is gone."""

QUEUE = 1_000
"""Events that wait for the store. Of more, the oldest are dropped and counted: a store that is busy for that long is
busy for a reason."""

REMEMBERED = 1_000
"""Recalls and client sessions that are known without asking the store; the ones not heard of longest make room."""

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """[telemetry]. ``log_queries``: keep the words of questions, too, redacted: for finding faults in ranking."""

    enabled: bool = True
    retention_days: float = 90.0
    log_queries: bool = False


class Telemetry:
    """A listener that stores events in the background. Safe to call from any thread; raises nothing.

    ``clean`` redacts the words of a question. Its thread starts with the first event and ends with ``close``.
    """

    def __init__(
        self,
        store: Store,
        options: TelemetryOptions,
        clean: Callable[[str], str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._options = options
        self._clean = clean
        self._clock = clock
        self._waiting: deque[Event] = deque()
        self._sessions: OrderedDict[str, str] = OrderedDict()
        self._recalls: OrderedDict[str, str] = OrderedDict()
        self._dropped = 0
        self._closing = False
        self._changed = threading.Condition()
        self._storing = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        with self._changed:
            session = event.caller.session
            if self._closing or (isinstance(event, Met) and session in self._sessions):
                return
            latest = self._sessions.get(session, "")
            if isinstance(event, Recalled):
                event = event if self._options.log_queries else replace(event, query=None)
                latest = event.id
                _remember(self._recalls, event.id, session)
            _remember(self._sessions, session, latest)
            self._waiting.append(event)
            if len(self._waiting) > QUEUE:
                self._waiting.popleft()
                self._dropped += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="grounded-telemetry", daemon=True)
                self._thread.start()
            self._changed.notify()

    def latest(self, session: str) -> str | None:
        """The id of the last recall of a client session. Raises: StoreError."""
        with self._changed:
            known = self._sessions.get(session)
        return known or self._store.find_recall(session=session)

    def has(self, recall_id: str) -> bool:
        """Whether there was such a recall. Raises: StoreError."""
        with self._changed:
            known = recall_id in self._recalls
        return known or self._store.find_recall(id=recall_id) is not None

    @property
    def dropped(self) -> int:
        """Events that were lost and are not counted in the store yet."""
        return self._dropped

    def flush(self) -> int:
        """Store what waits, now, as far as the store takes it. Returns ``dropped``."""
        with self._storing:
            with self._changed:
                batch, dropped = list(self._waiting), self._dropped
                self._waiting.clear()
            if not batch and not dropped:
                return 0
            try:
                keep_from = self._clock() - self._options.retention_days * DAY
                self._store.note([self._cleaned(each) for each in batch], keep_from=keep_from, dropped=dropped)
            except StoreBusy:
                self._keep(batch)
            except StoreError as error:
                logger.info("%d events of telemetry are lost: %s", len(batch), error)
                self._lose(len(batch))
            else:
                self._lose(-dropped)
            return self._dropped

    def close(self) -> None:
        """Store what waits, within ``CLOSE_S``, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                self._changed.wait_for(lambda: self._closing, timeout=FLUSH_S)
                closing = self._closing
            self.flush()
            if closing:
                return

    def _keep(self, batch: list[Event]) -> None:
        """Put back what a busy store did not take, in front of what came meanwhile, as far as there is room."""
        with self._changed:
            kept = batch[-max(0, QUEUE - len(self._waiting)) :] if len(self._waiting) < QUEUE else []
            self._waiting.extendleft(reversed(kept))
            self._dropped += len(batch) - len(kept)

    def _lose(self, count: int) -> None:
        with self._changed:
            self._dropped += count

    def _cleaned(self, event: Event) -> Event:
        if not isinstance(event, Recalled) or event.query is None:
            return event
        try:
            return replace(event, query=self._clean(event.query))
        except RedactionError:
            return replace(event, query=None)


def _remember(table: OrderedDict[str, str], key: str, value: str) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > REMEMBERED:
        table.popitem(last=False)
