"""The two lifetimes of a server: its process never outlives its client, its memory opens once, when needed.

A watchdog thread ends the process by ``os._exit``: it works while the event loop or a tool is stuck in C code,
where cancelling and interpreter shutdown both wait or abort. Knows nothing about transports beyond "is the client
still there?".
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from grounded_mcp.errors import GroundedError, StoreError
from grounded_mcp.events import Caller
from grounded_mcp.faces.replies import places

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often a dead parent and a closed stdout are looked for. They must be noticed within 5 s (F3)."""

CLOSE_SECONDS = 1.0
"""What closing the store gets after the grace. SQLite survives being cut off, so a stuck close costs nothing."""

WARM_UP_SECONDS = 0.3
"""From the first request to opening the store: long enough for ``initialize`` and ``tools/list`` to be answered
before loading a model competes with them for the interpreter, short against a person's first prompt."""

MET = 64
"""Clients that came before the memory was open and are remembered until it is."""

_SIGNALS = {"SIGTERM": 0, "SIGINT": 130, "SIGBREAK": 0}
"""Signal -> exit code. Clients end servers with SIGTERM as a matter of course, so that is a success."""


def parent_watch() -> Callable[[], str | None]:
    """Ask whether the parent process died. It did when this process was handed to another (POSIX)."""
    first = os.getppid()
    return lambda: "parent process ended" if os.getppid() != first else None


class Lifetime:
    """The process's end, decided in one place. ``end`` may be called from any thread and from signal handlers."""

    def __init__(self, grace_seconds: float) -> None:
        self.grace_seconds = grace_seconds
        self.drain: Callable[[float], object] = lambda _seconds: None
        self.close: Callable[[], object] = lambda: None
        self.checks: list[Callable[[], str | None]] = []
        self._ends: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self._watchdog = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def begin(self) -> None:
        """Install the signal handlers (main thread) and start watching."""
        for name, code in _SIGNALS.items():
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal(name, code))
        self._watchdog.start()

    def end(self, reason: str, code: int = 0) -> None:
        """Ask for the process to end. The first reason decides the exit code."""
        self._ends.put((reason, code))

    def wait(self) -> NoReturn:
        """Block until the process is gone."""
        while True:
            self._watchdog.join()

    def _on_signal(self, name: str, code: int) -> Callable[[int, FrameType | None], None]:
        # SimpleQueue.put is reentrant: the one hand-over that is safe inside a signal handler.
        return lambda _number, _frame: self.end(name, code)

    def _watch(self) -> None:
        reason, code = self._next_end()
        ending = threading.Thread(target=self._wind_down, args=(reason,), name="ending", daemon=True)
        ending.start()
        ending.join(self.grace_seconds + CLOSE_SECONDS)
        os._exit(code)

    def _next_end(self) -> tuple[str, int]:
        while True:
            try:
                return self._ends.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if found := next(filter(None, (check() for check in self.checks)), None):
                    return found, 0

    def _wind_down(self, reason: str) -> None:
        """Runs beside the watchdog, which does not wait for it beyond the grace: logging too may block."""
        try:
            self.drain(self.grace_seconds)
            self.close()
            logger.info("ended: %s", reason)
            sys.stderr.flush()
        except Exception as error:  # noqa: BLE001 - the process ends either way
            with contextlib.suppress(Exception):
                logger.warning("while ending: %s", places(error))


class Opening:
    """The memory behind the tools: opened once, by the first call or shortly after the first request.

    An opening that fails is reported to the call that needed it and tried again by the next one.
    """

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open = open_memory
        self._memory: Memory | None = None
        self._closed = False
        self._met: deque[Caller] = deque(maxlen=MET)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def memory(self) -> Memory:
        """The open memory. Raises: GroundedError when it cannot be opened, or no longer is."""
        with self._lock:
            if self._closed:
                raise StoreError("The memory server is shutting down.", "Call again once it has restarted.")
            if self._memory is None:
                memory = self._open()
                memory.start()
                self._memory = memory
            self._introduce(self._memory)
            return self._memory

    def meet(self, caller: Caller) -> None:
        """Tell the memory that a client was offered the tools, once it is open; never waits for that."""
        self._met.append(caller)
        if self._memory is not None:
            self._introduce(self._memory)

    def _introduce(self, memory: Memory) -> None:
        with contextlib.suppress(IndexError):
            while True:
                memory.meet(self._met.popleft())

    def healthy(self) -> bool:
        """Whether the store opens and can be read now."""
        try:
            self.memory().status()
        except GroundedError:
            return False
        return True

    def words(self, error: GroundedError) -> str:
        """What whoever asked is told of an error."""
        return str(error)

    def let_go(self, memory: Memory | None) -> None:
        """Close a memory whose store is gone, unless another call did; the next call opens what is there then."""
        with self._lock:
            if memory is None or memory is not self._memory:
                return
            self._memory = None
        memory.close()

    def warm_up(self) -> None:
        """Open in the background soon; only the first call does anything."""
        if self._timer is None and self._memory is None:
            self._timer = threading.Timer(WARM_UP_SECONDS, self._open_quietly)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Close what was opened; nothing opens afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._memory is not None:
                self._memory.close()
                self._memory = None

    def _open_quietly(self) -> None:
        try:
            self.memory()
        except GroundedError as error:
            logger.warning("the store did not open: %s", error)
        except BaseException as error:  # noqa: BLE001 - the next tool call meets it again
            logger.error("the store did not open: %s", places(error))
