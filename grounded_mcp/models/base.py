"""What a model must do: one verb. Knows nothing about where models come from or who asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from grounded_mcp.values import Vector

Purpose = Literal["query", "passage"]


class Embedder(Protocol):
    """Turns texts into unit vectors. May be called from any thread."""

    @property
    def fingerprint(self) -> str:
        """Names the model and everything that changes its vectors; stored with the index."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def floor(self) -> float:
        """Cosine similarity under which this model's neighbours are noise (R4)."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """One unit vector per text, in order; the same text always gets the same one, whatever its neighbours (R17).

        Raises: ModelError, with the code "invalid" for a text whose vector would be zero or not finite.
        """
        ...


class Reranker(Protocol):
    """Reads a query and a text together and says how well the one answers the other. May be called from any thread."""

    @property
    def fingerprint(self) -> str:
        """Names the model."""
        ...

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One raw logit per text, in order, on the model's own scale: before any sigmoid, higher is better.

        The same pair always gets the same one, whatever its neighbours (R17). Raises: ModelError.
        """
        ...
