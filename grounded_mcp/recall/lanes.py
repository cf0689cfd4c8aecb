"""The searches: each lane turns a query into one ranking per source kind; degraded is a value, not an exception.

Knows nothing about how rankings are merged, or about the model that made the query's vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grounded_mcp import entities
from grounded_mcp.entities import entity_id
from grounded_mcp.errors import ModelError, StoreMismatch
from grounded_mcp.recall.graph import GraphOptions, best, related
from grounded_mcp.recall.temporal import Window
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Candidate, Degradation, Filter, Hit, Kind, Query, Ranking, Space, Vector


@dataclass(frozen=True, slots=True)
class GatherOptions:
    """[recall] candidates per lane and source kind: ``max(factor * limit, minimum)`` (R1).

    A conversation is many passages and one result: of sessions so many more passages are looked at.
    """

    candidate_factor: int
    candidate_minimum: int
    session_candidates: int

    def depth(self, limit: int, kind: Kind | None = None) -> int:
        documents = max(self.candidate_factor * limit, self.candidate_minimum)
        return documents * (self.session_candidates if kind == "session" else 1)


_ALSO: Mapping[Kind, tuple[Kind, ...]] = {"session": ("digest",)}
"""Kinds that are found under another one's name: a weekly digest stands for the sessions that it tells of. It shares
their ceiling and their count, and its card's ``source`` is the one that was asked for."""


def scope_for(kind: Kind, query: Query) -> Filter:
    """The filter of one kind: facts by their own scopes, the rest by project."""
    scopes = query.scope.facts if kind == "fact" else query.scope.others
    return Filter(frozenset({kind}), scopes, query.since, query.until)


def search(kind: Kind, query: Query, by: Callable[[Filter], Sequence[Hit]]) -> tuple[Hit, ...]:
    """What a search finds of one source kind, best first. A kind found under its name is searched as deep itself:
    of many conversations that match, one digest would not be among the best passages."""
    found = by(scope_for(kind, query))
    others = [hit for other in _ALSO.get(kind, ()) for hit in by(scope_for(other, query))]
    return tuple(sorted([*found, *others], key=lambda hit: (-hit.score, hit.passage)) if others else found)


def lexical(store: Store, terms: Sequence[str], query: Query, options: GatherOptions) -> tuple[Ranking, ...]:
    """BM25 over the query's index terms. A query of no terms has no lexical hits."""

    def find(kind: Kind) -> Sequence[Hit]:
        depth = options.depth(query.limit, kind)
        return search(kind, query, lambda where: store.lexical(terms, where, depth)) if terms else ()

    return tuple(Ranking("lexical", kind, tuple(find(kind))) for kind in query.kinds)


def vector(
    store: Store, embedded: Vector, space: Space, query: Query, options: GatherOptions, floor: float
) -> tuple[Ranking, ...]:
    """Cosine similarity to the embedded query; candidates below ``floor`` do not enter (R4).

    Raises: StoreMismatch when the index is of another ``space`` than the query's vector.
    """

    def find(kind: Kind) -> Sequence[Hit]:
        depth = options.depth(query.limit, kind)
        return search(kind, query, lambda where: store.nearest(embedded, where, depth, space=space))

    return tuple(_above(floor, kind, find(kind)) for kind in query.kinds)


def graph(
    store: Store, near: Sequence[Candidate], query: Query, depths: GatherOptions, options: GraphOptions
) -> tuple[Ranking, ...]:
    """What shares an entity with the query, or with the best of what the other lanes found (R5); needs no model.

    ``near``: those lanes' hits, fused, best first. The first of them seed the hop; all of them are scored. A query
    without an entity that the store knows finds nothing: the names that its hits share are as a rule not its subject.
    """
    asked = frozenset(entity_id(entity.key) for entity in entities.asked(query.text))
    if not asked:
        return tuple(Ranking("graph", kind) for kind in query.kinds)
    seeds = [candidate.id for candidate in near[: options.seeds]]
    named = store.entities_of(seeds)
    wanted = sorted(asked.union(*(named.get(seed, ()) for seed in seeds)))
    mentions = {kind: store.mentions(wanted, _named(kind, query), options.common) for kind in query.kinds}
    if not any(asked & known.keys() for known in mentions.values()):
        return tuple(Ranking("graph", kind) for kind in query.kinds)
    if any(len(known.get(entity, ())) > options.common for known in mentions.values() for entity in asked):
        named = store.entities_of([candidate.id for candidate in near])
    rankings = []
    for kind, known in mentions.items():
        found = frozenset(candidate.id for candidate in near if candidate.kind == kind)
        scores = related(asked, seeds, named, known, found, options)
        rankings.append(Ranking("graph", kind, best(scores, found, depths.depth(query.limit, kind))))
    return tuple(rankings)


def _named(kind: Kind, query: Query) -> Filter:
    """The filter of one source kind together with what is found under its name."""
    return replace(scope_for(kind, query), kinds=frozenset((kind, *_ALSO.get(kind, ()))))


def temporal(store: Store, window: Window, query: Query, options: GatherOptions) -> tuple[Ranking, ...]:
    """What lies in or near the time that the query names, nearest and fullest first (R6); needs no model, no words."""

    def find(kind: Kind) -> Sequence[Hit]:
        depth = options.depth(query.limit, kind)
        return search(kind, query, lambda where: store.timed(window.since, window.until, where, depth))

    return tuple(Ranking("temporal", kind, tuple(find(kind))) for kind in query.kinds)


def _above(floor: float, kind: Kind, hits: Sequence[Hit]) -> Ranking:
    kept = tuple(hit for hit in hits if hit.score >= floor)
    return Ranking("vector", kind, kept, below=len(hits) - len(kept))


def degradation(error: ModelError | StoreMismatch) -> Degradation:
    """What an unanswered vector lane is reported as (R16)."""
    code = error.code if isinstance(error, ModelError) else "mismatch"
    return Degradation(code, error.message, error.remedy)
