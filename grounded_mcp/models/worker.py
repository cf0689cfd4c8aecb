"""One daemon thread that does jobs in order, each with a deadline; nobody waits behind a job that overran its own.

Knows nothing about models; whatever a job raises reaches the waiter as a ModelError. Daemon, so that a job that never
ends cannot keep the process alive.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from grounded_mcp.errors import ModelError

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Any]
    future: Future[Any]
    deadline: float


class Worker:
    """``clock`` gives seconds that only go forward; ``noun`` is what messages call the one whose jobs these are.

    The thread starts with the first job.
    """

    def __init__(self, name: str, clock: Callable[[], float], noun: str) -> None:
        self._name = name
        self._clock = clock
        self._noun = noun
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._current: _Job | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._blamed: set[str] = set()

    def submit(self, work: Callable[[], T], seconds: float) -> Future[T]:
        """Queue ``work``; the future is never cancelled and raises nothing but ModelError.

        Raises: ModelError "slow" at once while an earlier job is past its deadline.
        """
        if self.overrun():
            raise ModelError(
                "slow", f"The {self._noun} is still busy with an earlier text.", "It is used again when it is done."
            )
        job = _Job(work, Future(), self._clock() + seconds)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self._jobs.put(job)
        return job.future

    def overrun(self) -> bool:
        """Whether the job at hand is past its deadline."""
        current = self._current
        return current is not None and self._clock() > current.deadline

    def close(self) -> None:
        """End the thread once the jobs that were submitted are done."""
        with self._lock:
            if self._thread is not None:
                self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._current = job
            if self._clock() > job.deadline:
                job.future.set_exception(ModelError("slow", f"The {self._noun} was busy for too long.", "Ask again."))
            else:
                self._do(job)
            self._current = None
            del job  # an idle thread holds on to no result

    def _do(self, job: _Job) -> None:
        try:
            result = job.work()
        except ModelError as error:
            job.future.set_exception(error)
        # As in concurrent.futures: whatever a job raises belongs to the waiter, and the thread lives on.
        except BaseException as error:  # noqa: BLE001
            job.future.set_exception(self._translated(error))
        else:
            job.future.set_result(result)

    def _translated(self, error: BaseException) -> ModelError:
        """A stray exception as ours; where it came from is logged once per kind, not once per call (T4).

        Its words stay out of both: they may quote the text that was asked about (case 59).
        """
        kind = type(error).__name__
        if kind not in self._blamed:
            self._blamed.add(kind)
            frames = traceback.extract_tb(error.__traceback__)
            trail = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
            log.error("The %s raised %s at %s.", self._noun, kind, trail)
        fault = ModelError("failed", f"The {self._noun} failed ({kind}).", "Where it failed is in the log, on stderr.")
        fault.__cause__ = error
        return fault
