"""An embedder behind its door: queries and passages in time, and vectors that are never trusted unseen.

Whatever the embedder does - is missing, hangs, raises, answers NaN - a caller gets a vector or a ModelError in time.
Imports no model library; knows nothing about stores or ranking.
"""

from __future__ import annotations

import logging
import math
import struct
import time
from collections.abc import Callable, Sequence

from grounded_mcp.errors import ModelError
from grounded_mcp.models import catalog
from grounded_mcp.models.base import Embedder, Purpose
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.models.door import Door, GuardState, Wording
from grounded_mcp.models.worker import Worker
from grounded_mcp.values import Space, Vector

log = logging.getLogger(__name__)

PASSAGE_SECONDS = 5.0
"""Seconds one passage may take before a batch counts as hung: 100 times what the bundled model needs."""

_PROBE = "The quick brown fox jumps over the lazy dog."

Loader = Callable[[EmbeddingOptions], Embedder]


class GuardedEmbedder:
    """An embedder that may be asked at any time, from any thread. ``clock`` gives seconds that only go forward."""

    def __init__(
        self,
        options: EmbeddingOptions,
        load: Loader = catalog.load,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        wording = Wording("embedder", "embedding model", without="No vectors")
        self._door = Door(lambda: load(options), wording, retry_after_s=options.retry_after_s, clock=clock)
        self._filling = Worker("grounded-passages", clock, wording.noun)

    def start(self) -> None:
        """Begin loading unless that is done, under way, or failed less than ``retry_after_s`` ago. Returns at once."""
        self._door.start()

    @property
    def state(self) -> GuardState:
        """How the embedder is right now; starts nothing."""
        return self._door.state

    def wait_ready(self, seconds: float) -> bool:
        """Start, and wait at most ``seconds``; False when the model is not there by then, at once when it failed."""
        return self._door.wait_ready(seconds)

    @property
    def space(self) -> Space:
        """The vector space of the loaded model. Raises: ModelError when there is none."""
        embedder = self._door.ready()
        return Space(embedder.fingerprint, embedder.dimensions)

    @property
    def floor(self) -> float:
        """Cosine similarity under which neighbours are noise. Raises: ModelError when no model is loaded."""
        return self._door.ready().floor

    # --- asking -------------------------------------------------------------------------------------------

    def begin(self, text: str) -> Callable[[], Vector]:
        """Start embedding a query; calling the result waits for its vector.

        The time (``query_timeout_s``) runs from now, not from the wait. Both raise ModelError.
        """
        waiting = self._door.begin(
            lambda embedder: (_embed(embedder, [text], "query")[0], embedder.dimensions), self._options.query_timeout_s
        )
        return lambda: _usable(*waiting())

    def query(self, text: str) -> Vector:
        """The vector of a query, in at most ``query_timeout_s``. Raises: ModelError."""
        return self.begin(text)()

    # --- filling ------------------------------------------------------------------------------------------

    def passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector per text, None where the embedder has no usable one.

        Raises: ModelError when the embedder itself is the trouble and not one of the texts.
        """
        embedder = self._door.ready()
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
        future = self._filling.submit(lambda: _embed(embedder, texts, "passage"), seconds)
        try:
            return future.result(seconds)
        except TimeoutError:
            raise ModelError(
                "slow", f"The embedder hung on {len(texts)} passages.", "Restart: they wait in the store."
            ) from None

    def close(self) -> None:
        """End the threads once they have done what they were asked."""
        self._door.close()
        self._filling.close()


def _usable(vector: Vector, dimensions: int) -> Vector:
    if (wrong := flaw(vector, dimensions)) is not None:
        raise ModelError("invalid", f"The embedder answered a vector that {wrong}.", "Try other words.")
    return vector


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
