"""The life of the models behind a memory: loaded when asked, vectors filled in the background, closed at the end.

Knows nothing about recall, about what the passages say, or about faces.
"""

from __future__ import annotations

from collections.abc import Callable

from grounded_mcp.background import Drain
from grounded_mcp.ingest.vectors import BackfillReport, backfill, reset
from grounded_mcp.models.guard import GuardedEmbedder
from grounded_mcp.models.reranking import GuardedReranker
from grounded_mcp.stores.base import Store

MODEL_WAIT_S = 60.0
"""The longest that dropping all vectors waits for the model that is to make them again; it loads in about 2 s."""


class Upkeep:
    """One store's embedder and reranker, either of which may be None, and the thread that embeds what is new."""

    def __init__(
        self, store: Store, embedder: GuardedEmbedder | None, reranker: GuardedReranker | None, batch_size: int
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._reranker = reranker
        self._batch_size = batch_size
        self._drain: Drain | None = None

    def start(self) -> None:
        """Load the models, and fill vectors in the background from now on. Returns at once."""
        if self._embedder is not None and self._drain is None:
            self._embedder.start()
            self._drain = Drain(self._fill)
            self._drain.nudge()
        if self._reranker is not None:
            self._reranker.start()

    def nudge(self) -> None:
        """There is something new to embed."""
        if self._drain is not None:
            self._drain.nudge()

    def wait_ready(self, seconds: float) -> bool:
        """Wait for the models to load; True where there are none."""
        if self._reranker is not None:
            self._reranker.wait_ready(seconds)
        return self._embedder is None or self._embedder.wait_ready(seconds)

    def fill(self, progress: Callable[[int, int], None] | None, stop: Callable[[], bool]) -> BackfillReport | None:
        """Embed what has no vector yet; None where vectors are off."""
        if self._embedder is None:
            return None
        return backfill(self._store, self._embedder, batch_size=self._batch_size, progress=progress, stop=stop)

    def reset(self) -> int:
        """Drop every vector, so that ``fill`` makes them with the configured model.

        From then on the vectors of any other model are refused. Raises, with nothing dropped: ModelError when the model
        does not load; StoreBusy while another process fills in vectors; StoreError.
        """
        self.wait_ready(MODEL_WAIT_S)
        space = self._embedder.space if self._embedder else None
        return reset(self._store, space)

    def close(self) -> None:
        """Stop background work at its next batch and let go of the models."""
        if self._drain is not None:
            self._drain.stop()
        for model in (self._embedder, self._reranker):
            if model is not None:
                model.close()

    def shared(self) -> Upkeep:
        """The same, for another memory of this store: it asks for vectors, and begins and ends nothing."""
        return _Guest(self)

    def _fill(self, stop: Callable[[], bool]) -> str | None:
        """Fill in vectors if any are missing; why some still are, if anything is wrong."""
        report = self.fill(None, stop)
        return report.reason if report else None


class _Guest(Upkeep):
    def __init__(self, host: Upkeep) -> None:
        super().__init__(host._store, host._embedder, host._reranker, host._batch_size)
        self._host = host

    def start(self) -> None:
        self._host.start()

    def nudge(self) -> None:
        self._host.nudge()

    def close(self) -> None:
        return None
