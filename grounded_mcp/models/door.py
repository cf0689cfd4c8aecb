"""The bounded door to a model: loads it in the background, and waits for its answers only so long.

Whatever the model does - is missing, hangs, raises - a caller gets an answer or a ModelError in time. Imports no model
library; knows nothing about what a model is asked.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from grounded_mcp.errors import ModelError
from grounded_mcp.models.worker import Worker

log = logging.getLogger(__name__)

MISSES = 3
"""Questions that went unanswered in a row before the model is left alone for ``REST_SECONDS``."""

REST_SECONDS = 30.0

StateName = Literal["idle", "loading", "ready", "failed"]
T = TypeVar("T")


class Model(Protocol):
    """Whatever can say which model it is."""

    @property
    def fingerprint(self) -> str: ...


M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class GuardState:
    """``idle``: not asked for yet. ``problem`` says what is wrong and what to do, None when all is well."""

    name: StateName
    fingerprint: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """How messages speak of who answers, of its model, of doing without, and of what to do when it is too slow."""

    noun: str
    model: str
    without: str
    when_slow: str = "Ask again."


class Door(Generic[M]):
    """May be asked at any time, from any thread. ``clock`` gives seconds that only go forward."""

    def __init__(
        self,
        load: Callable[[], M],
        wording: Wording,
        *,
        retry_after_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._wording = wording
        self._retry_after_s = retry_after_s
        self._clock = clock
        self._lock = threading.Lock()
        self._loading: Future[M] | None = None
        self._retry_at = -math.inf
        self._worker = Worker(f"grounded-{wording.noun}", clock, wording.noun)
        self._misses = 0
        self._rest_until = -math.inf

    def start(self) -> Future[M]:
        """Begin loading unless that is done, under way, or failed less than ``retry_after_s`` ago. Returns at once."""
        with self._lock:
            if self._loading is None or self._may_retry(self._loading):
                self._loading = self._worker.submit(self._open, math.inf)
            return self._loading

    def _may_retry(self, loading: Future[M]) -> bool:
        return loading.done() and loading.exception() is not None and self._clock() >= self._retry_at

    def _open(self) -> M:
        try:
            return self._load()
        except ModelError as error:
            log.warning("%s: %s", self._wording.without, error)
            raise
        finally:
            self._retry_at = self._clock() + self._retry_after_s

    @property
    def state(self) -> GuardState:
        """How the model is right now; starts nothing."""
        loading = self._loading
        if loading is None:
            return GuardState("idle")
        if not loading.done():
            return GuardState("loading")
        if (error := loading.exception()) is not None:
            return GuardState("failed", problem=str(error))
        silent = self._clock() < self._rest_until or self._worker.overrun()
        return GuardState("ready", loading.result().fingerprint, str(self._silent()) if silent else None)

    def wait_ready(self, seconds: float) -> bool:
        """Start, and wait at most ``seconds``; False when the model is not there by then, at once when it failed."""
        wait([self.start()], max(seconds, 0.0))
        return self.state.name == "ready"

    def ready(self) -> M:
        """The loaded model; one that is not loaded begins to. Raises: ModelError when there is none yet."""
        loading = self.start()
        if not loading.done():
            raise ModelError("loading", f"The {self._wording.model} is still loading.", "Ask again in a few seconds.")
        if isinstance(error := loading.exception(), ModelError):
            # A fresh one each time: raising the same object again and again would grow its traceback.
            raise ModelError(error.code, error.message, error.remedy)
        return loading.result()

    def begin(self, work: Callable[[M], T], seconds: float) -> Callable[[], T]:
        """Start ``work`` on the model; calling the result waits for the answer.

        The ``seconds`` run from now, not from the wait. Both raise ModelError.
        """
        model = self.ready()
        if self._clock() < self._rest_until:
            raise self._silent()
        deadline = self._clock() + seconds
        future = self._worker.submit(lambda: work(model), seconds)
        return lambda: self._answer(future, deadline, seconds)

    def _answer(self, future: Future[T], deadline: float, seconds: float) -> T:
        try:
            answer = future.result(max(deadline - self._clock(), 0.0))
        except TimeoutError:
            self._missed()
            raise self.too_slow(seconds) from None
        except ModelError as error:
            if error.code != "invalid":
                self._missed()
            raise
        self._misses = 0
        return answer

    def too_slow(self, seconds: float) -> ModelError:
        """What a caller is told whose ``seconds`` are over."""
        return ModelError("slow", f"The {self._wording.noun} took longer than {seconds:g} s.", self._wording.when_slow)

    def _missed(self) -> None:
        self._misses += 1
        if self._misses >= MISSES:
            self._misses = 0
            self._rest_until = self._clock() + REST_SECONDS

    def _silent(self) -> ModelError:
        remedy = f"It is tried again within {REST_SECONDS:g} s, or restart."
        return ModelError("slow", f"The {self._wording.noun} does not answer.", remedy)

    def close(self) -> None:
        """End the thread once it has done what it was asked."""
        self._worker.close()
