"""A reranker behind its door: raw logits for a query's candidates in time, or a ModelError.

Holds the options of [recall.rerank] that a model needs. Imports no model library until a reranker is configured and
asked; knows nothing about candidates, scores or stores: it gets texts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from grounded_mcp.errors import ModelError
from grounded_mcp.models.base import Reranker
from grounded_mcp.models.catalog import not_installed
from grounded_mcp.models.door import Door, GuardState, Wording

NONE: Final = "none"
"""The model's name where results are not reranked."""

SLICE = 8
"""Texts between two looks at the clock, so that a reranker nobody waits for any more is not busy for long."""


@dataclass(frozen=True, slots=True)
class RerankerOptions:
    """[recall.rerank]. ``model``: ``NONE``, a name that fastembed knows, or the path of a folder with a tokenizer and
    ``model.onnx`` (or ``onnx/model.onnx``), absolute or starting with ``./``, ``../`` or ``~``.

    Seconds everywhere. What embedders and rerankers share - the last four - is set under [embedding].
    """

    model: str = NONE
    timeout_s: float = 5.0
    cache_dir: str = ""
    allow_download: bool = False
    retry_after_s: float = 300.0
    threads: int = 0


def load(options: RerankerOptions) -> Reranker:
    """The configured reranker, loaded and tried out. Takes a second or more: not for a caller that waits.

    Raises: ModelError; for the model "none" always.
    """
    if options.model == NONE:
        raise ModelError("missing", "Reranking is turned off.", "Set recall.rerank.model to use it.")
    try:
        from grounded_mcp.models import onnx_reranking
    except ImportError as error:
        raise not_installed(error) from error
    return onnx_reranking.load(options)


class GuardedReranker:
    """A reranker that may be asked at any time, from any thread. ``clock`` gives seconds that only go forward."""

    def __init__(
        self,
        options: RerankerOptions,
        load: Callable[[RerankerOptions], Reranker] = load,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = options.timeout_s
        self._clock = clock
        wording = Wording(
            "reranker",
            "reranking model",
            without="No reranking",
            when_slow="Lower recall.rerank.window, raise recall.rerank.timeout_s, or name a smaller model.",
        )
        self._door = Door(lambda: load(options), wording, retry_after_s=options.retry_after_s, clock=clock)

    def start(self) -> None:
        """Begin loading unless that is done, under way, or failed less than ``retry_after_s`` ago. Returns at once."""
        self._door.start()

    @property
    def state(self) -> GuardState:
        """How the reranker is right now; starts nothing."""
        return self._door.state

    def wait_ready(self, seconds: float) -> bool:
        """Start, and wait at most ``seconds``; False when the model is not there by then, at once when it failed."""
        return self._door.wait_ready(seconds)

    @property
    def fingerprint(self) -> str:
        """Names the loaded model. Raises: ModelError when there is none."""
        return self._door.ready().fingerprint

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One finite logit per text, in order, in at most ``timeout_s`` for all of them.

        Raises: ModelError: "loading" (and loading has begun), "missing", "failed", "slow", "invalid".
        """
        until = self._clock() + self._seconds
        logits = self._door.begin(lambda reranker: self._sliced(reranker, query, texts, until), self._seconds)()
        if not all(map(math.isfinite, logits)):
            raise ModelError("invalid", "The reranker gave a score that is not finite.", "Name another model.")
        return logits

    def _sliced(self, reranker: Reranker, query: str, texts: Sequence[str], until: float) -> list[float]:
        logits: list[float] = []
        for at in range(0, len(texts), SLICE):
            if self._clock() > until:
                raise self._door.too_slow(self._seconds)
            logits += reranker.scores(query, texts[at : at + SLICE])
        if len(logits) != len(texts):
            wrong = f"The reranker gave {len(logits)} scores for {len(texts)} texts."
            raise ModelError("failed", wrong, "Name another model.")
        return logits

    def close(self) -> None:
        """End the thread once it has done what it was asked."""
        self._door.close()
