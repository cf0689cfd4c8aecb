"""The bounded door to an embedder: loads it in the background, waits only so long, and never trusts its vectors.

Whatever the embedder does - is missing, hangs, raises, answers NaN - a caller gets a vector or a ModelError in time.
Imports no model library; knows nothing about stores or ranking.
"""

from __future__ import annotations

import logging
import math
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Literal

from grounded_mcp.errors import ModelError
from grounded_mcp.models import catalog
from grounded_mcp.models.base import Embedder, Purpose
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.models.worker import Worker
from grounded_mcp.values import Space, Vector

log = logging.getLogger(__name__)

PASSAGE_SECONDS = 5.0
"""Seconds one passage may take before a batch counts as hung: 100 times what the bundled model needs."""

MISSES = 3
"""Queries that went unanswered in a row before the embedder is left alone for ``REST_SECONDS``."""

REST_SECONDS = 30.0

_PROBE = "The quick brown fox jumps over the lazy dog."

Loader = Callable[[EmbeddingOptions], Embedder]
StateName = Literal["idle", "loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class GuardState:
    """``idle``: not asked for yet. ``problem`` says what is wrong and what to do, None when all is well."""

    name: StateName
    fingerprint: str | None = None
    problem: str | None = None


class GuardedEmbedder:
    """An embedder that may be asked at any time, from any thread. ``clock`` gives seconds that only go forward."""

    def __init__(
        self,
        options: EmbeddingOptions,
        load: Loader = catalog.load,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._loading: Future[Embedder] | None = None
        self._retry_at = -math.inf
        self._queries = Worker("grounded-query", clock)
        self._work = Worker("grounded-model", clock)
        self._misses = 0
        self._rest_until = -math.inf

    # --- loading ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin loading unless that is done, under way, or failed less than ``retry_after_s`` ago. Returns at once."""
        self._started()

    def _started(self) -> Future[Embedder]:
        with self._lock:
            if self._loading is None or self._may_retry(self._loading):
                self._loading = self._work.submit(self._open, math.inf)
            return self._loading

    def _may_retry(self, loading: Future[Embedder]) -> bool:
        return loading.done() and loading.exception() is not None and self._clock() >= self._retry_at

    def _open(self) -> Embedder:
        try:
            return self._load(self._options)
        except ModelError as error:
            log.warning("No vectors: %s", error)
            raise
        finally:
            self._retry_at = self._clock() + self._options.retry_after_s

    @property
    def state(self) -> GuardState:
        """How the embedder is right now; starts nothing."""
        loading = self._loading
        if loading is None:
            return GuardState("idle")
        if not loading.done():
            return GuardState("loading")
        if (error := loading.exception()) is not None:
            return GuardState("failed", problem=str(error))
        silent = self._clock() < self._rest_until or self._queries.overrun()
        return GuardState("ready", loading.result().fingerprint, str(_silent()) if silent else None)

    def wait_ready(self, seconds: float) -> bool:
        """Start, and wait at most ``seconds``; False when the model is not there by then, at once when it failed."""
        wait([self._started()], max(seconds, 0.0))
        return self.state.name == "ready"

    def _ready(self) -> Embedder:
        loading = self._started()
        if not loading.done():
            raise ModelError("loading", "The embedding model is still loading.", "Ask again in a few seconds.")
        if isinstance(error := loading.exception(), ModelError):
            # A fresh one each time: raising the same object again and again would grow its traceback.
            raise ModelError(error.code, error.message, error.remedy)
        return loading.result()

    @property
    def space(self) -> Space:
        """The vector space of the loaded model. Raises: ModelError when there is none."""
        embedder = self._ready()
        return Space(embedder.fingerprint, embedder.dimensions)

    @property
    def floor(self) -> float:
        """Cosine similarity under which neighbours are noise. Raises: ModelError when no model is loaded."""
        return self._ready().floor

    # --- asking -------------------------------------------------------------------------------------------

    def begin(self, text: str) -> Callable[[], Vector]:
        """Start embedding a query; calling the result waits for its vector.

        The time (``query_timeout_s``) runs from now, not from the wait. Both raise ModelError.
        """
        seconds = self._options.query_timeout_s
        embedder = self._ready()
        if self._clock() < self._rest_until:
            raise _silent()
        deadline = self._clock() + seconds
        future = self._queries.submit(lambda: _embed(embedder, [text], "query"), seconds)
        return lambda: self._answer(future, deadline, embedder.dimensions)

    def query(self, text: str) -> Vector:
        """The vector of a query, in at most ``query_timeout_s``. Raises: ModelError."""
        return self.begin(text)()

    def _answer(self, future: Future[list[Vector]], deadline: float, dimensions: int) -> Vector:
        try:
            vector = future.result(max(deadline - self._clock(), 0.0))[0]
        except TimeoutError:
            self._missed()
            seconds = self._options.query_timeout_s
            raise ModelError("slow", f"The embedder took longer than {seconds} s.", "Ask again.") from None
        except ModelError as error:
            if error.code != "invalid":
                self._missed()
            raise
        self._misses = 0
        if (wrong := flaw(vector, dimensions)) is not None:
            raise ModelError("invalid", f"The embedder answered a vector that {wrong}.", "Try other words.")
        return vector

    def _missed(self) -> None:
        self._misses += 1
        if self._misses >= MISSES:
            self._misses = 0
            self._rest_until = self._clock() + REST_SECONDS

    # --- filling ------------------------------------------------------------------------------------------

    def passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector per text, None where the embedder has no usable one.

        Raises: ModelError when the embedder itself is the trouble and not one of the texts.
        """
        embedder = self._ready()
        try:
            vectors: list[Vector | None] = [*self._batch(embedder, texts)]
        except ModelError as error:
            if error.code == "slow":
                raise
            vectors = [self._alone(embedder, text) for text in texts]
        checked = [None if v is None or flaw(v, embedder.dimensions) else v for v in vectors]
        if bad := checked.count(None):
            log.warning("%d of %d passages got no usable vector from the embedder.", bad, len(checked))
        return checked

    def _alone(self, embedder: Embedder, text: str) -> Vector | None:
        try:
            return self._batch(embedder, [text])[0]
        except ModelError as error:
            if error.code == "slow":
                raise
            if error.code != "invalid":
                self._batch(embedder, [_PROBE])  # raises when it is not this text's fault
            return None

    def _batch(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        seconds = PASSAGE_SECONDS * len(texts)
        future = self._work.submit(lambda: _embed(embedder, texts, "passage"), seconds)
        try:
            return future.result(seconds)
        except TimeoutError:
            raise ModelError(
                "slow", f"The embedder hung on {len(texts)} passages.", "Restart: they wait in the store."
            ) from None

    def close(self) -> None:
        """End the threads once they have done what they were asked."""
        self._queries.close()
        self._work.close()


def flaw(vector: Vector, dimensions: int) -> str | None:
    """What is wrong with an embedder's vector; None for ``dimensions`` finite numbers of length 1 (+- 0.001, as stores
    ask)."""
    if len(vector) != 4 * dimensions:
        return f"has {len(vector) / 4:g} dimensions instead of {dimensions}"
    norm = math.hypot(*struct.unpack(f"<{dimensions}f", vector))
    if not math.isfinite(norm):
        return "is not finite"
    return None if abs(norm - 1) <= 1e-3 else f"has length {norm:.3g} instead of 1"


def _embed(embedder: Embedder, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
    vectors = embedder.embed(texts, purpose)
    if len(vectors) != len(texts):
        raise ModelError("failed", f"The embedder gave {len(vectors)} vectors for {len(texts)} texts.", "Report this.")
    return vectors


def _silent() -> ModelError:
    return ModelError(
        "slow", "The embedder does not answer.", f"It is tried again within {REST_SECONDS:g} s, or restart."
    )
