"""The searches: each lane turns a query into one ranking per source kind; degraded is a value, not an exception.

Knows nothing about how rankings are merged, or about the model that made the query's vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grounded_mcp.errors import ModelError, StoreMismatch
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Degradation, Filter, Hit, Kind, Query, Ranking, Space, Vector


@dataclass(frozen=True, slots=True)
class GatherOptions:
    """[recall] candidates per lane and source kind: ``max(factor * limit, minimum)`` (R1)."""

    candidate_factor: int
    candidate_minimum: int

    def depth(self, limit: int) -> int:
        return max(self.candidate_factor * limit, self.candidate_minimum)


def scope_for(kind: Kind, query: Query) -> Filter:
    """The filter of one source kind: facts by their own scopes, the rest by project."""
    scopes = query.scope.facts if kind == "fact" else query.scope.others
    return Filter(frozenset({kind}), scopes, query.since, query.until)


def lexical(store: Store, terms: Sequence[str], query: Query, depth: int) -> tuple[Ranking, ...]:
    """BM25 over the query's index terms. A query of no terms has no lexical hits."""
    return tuple(
        Ranking("lexical", kind, store.lexical(terms, scope_for(kind, query), depth) if terms else ())
        for kind in query.kinds
    )


def vector(store: Store, embedded: Vector, space: Space, query: Query, depth: int, floor: float) -> tuple[Ranking, ...]:
    """Cosine similarity to the embedded query; candidates below ``floor`` do not enter (R4).

    Raises: StoreMismatch when the index is of another ``space`` than the query's vector.
    """
    return tuple(
        _above(floor, kind, store.nearest(embedded, scope_for(kind, query), depth, space=space)) for kind in query.kinds
    )


def _above(floor: float, kind: Kind, hits: Sequence[Hit]) -> Ranking:
    kept = tuple(hit for hit in hits if hit.score >= floor)
    return Ranking("vector", kind, kept, below=len(hits) - len(kept))


def degradation(error: ModelError | StoreMismatch) -> Degradation:
    """What an unanswered vector lane is reported as (R16)."""
    code = error.code if isinstance(error, ModelError) else "mismatch"
    return Degradation(code, error.message, error.remedy)
