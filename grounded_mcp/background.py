"""Work that goes on behind the verbs: one thread that is nudged, stops when told, and never outlives the process.

Knows nothing about what the work is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from grounded_mcp.errors import StoreError

logger = logging.getLogger(__name__)

POLL_S = 5.0
"""How soon vectors follow what another process wrote, and how often what kept them away is tried again."""


class Drain:
    """One background thread that runs ``work`` when nudged and every ``POLL_S``, and ends with the process.

    ``work`` is given what asks whether to stop, and answers what is wrong, which is logged when it is news.
    """

    def __init__(self, work: Callable[[Callable[[], bool]], str | None]) -> None:
        self._work = work
        self._said: str | None = None
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def nudge(self) -> None:
        """There is work: start the thread if it does not run."""
        with self._lock:
            self._wanted.set()
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="grounded-vectors", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait(POLL_S)
            self._wanted.clear()
            try:
                wrong = self._work(self._stopping.is_set)
            except StoreError as error:
                wrong = str(error)
            if wrong and wrong != self._said and not self._stopping.is_set():
                logger.warning("some passages wait for their vectors: %s", wrong)
            self._said = wrong
