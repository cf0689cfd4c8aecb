"""The searches: each lane turns a query into one ranking per source kind; degraded is a value, not an exception.

Passages of equal score are in the order of their items' ids, also where a lane is cut: the order in which they were
stored decides nothing (R17). Knows nothing about how rankings are merged, or about the model that made the query's
vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grounded_mcp import entities
from grounded_mcp.entities import EntityId, entity_id
from grounded_mcp.errors import ModelError, StoreMismatch
from grounded_mcp.recall.graph import GraphOptions, best, related
from grounded_mcp.recall.temporal import Window
from grounded_mcp.stores.base import Store
from grounded_mcp.values import (
    Candidate,
    Degradation,
    Filter,
    Hit,
    Kind,
    PassageId,
    Query,
    Ranking,
    Space,
    StoredPassage,
    Vector,
)

TIES = 4
"""How deep equal scores are followed at the end of a lane, in depths. Reading a thousand more passages, to put a
thousand equal ones in order, would cost 30 ms."""

Fetch = Callable[[Sequence[PassageId]], Mapping[PassageId, StoredPassage]]


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


_ALSO: Mapping[Kind, tuple[Kind, ...]] = {"session": ("digest",), "learning": ("episode",)}
"""Kinds that are found under another one's name, in one ranking with it. A weekly digest stands for the sessions that
it tells of: it shares their ceiling and their count, and its card's ``source`` is the one that was asked for. Learnings
and episodes are one list: the best episode is not as good as the best learning only for being the best of its kind."""


def scope_for(kind: Kind, query: Query) -> Filter:
    """The filter of one kind: facts by their own scopes, the rest by project."""
    scopes = query.scope.facts if kind == "fact" else query.scope.others
    return Filter(frozenset({kind}), scopes, query.since, query.until)


def once(fetch: Fetch) -> Fetch:
    """``fetch``, reading every passage once: the lanes look at some of what is fetched after fusion."""
    held: dict[PassageId, StoredPassage] = {}

    def read(ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
        if new := [id_ for id_ in ids if id_ not in held]:
            held.update(fetch(new))
        return {id_: held[id_] for id_ in ids if id_ in held}

    return read


def search(
    kind: Kind, query: Query, depth: int, by: Callable[[Filter, int], Sequence[Hit]], fetch: Fetch
) -> tuple[Hit, ...]:
    """What a search finds of one source kind, best first. A kind found under its name is searched as deep itself:
    of many conversations that match, one digest would not be among the best passages."""
    found, *others = (_best(scope_for(each, query), depth, by, fetch) for each in (kind, *_ALSO.get(kind, ())))
    return settled([*found, *(hit for more in others for hit in more)], fetch) if any(others) else found


def _best(where: Filter, depth: int, by: Callable[[Filter, int], Sequence[Hit]], fetch: Fetch) -> tuple[Hit, ...]:
    """The ``depth`` best hits. Where the last of them is not the only one of its score, the others are looked at too,
    down to ``TIES`` times the depth: of more equal ones, which are seen is the store's choice."""
    hits = by(where, depth + 1)
    if len(hits) <= depth:
        return settled(hits, fetch)
    last = hits[depth - 1].score
    if hits[depth].score == last:
        hits = by(where, TIES * depth)
    return settled([hit for hit in hits if hit.score >= last], fetch)[:depth]


def settled(hits: Iterable[Hit], fetch: Fetch) -> tuple[Hit, ...]:
    """Best first; equal scores by item id, then by place in the item."""
    ordered = sorted(hits, key=lambda hit: -hit.score)
    count = Counter([hit.score for hit in ordered])
    if len(count) == len(ordered):
        return tuple(ordered)
    found = fetch([hit.passage for hit in ordered if count[hit.score] > 1])

    def place(hit: Hit) -> tuple[float, str, int]:
        passage = found.get(hit.passage)
        return (-hit.score, passage.item.id, passage.passage.seq) if passage else (-hit.score, "", 0)

    return tuple(sorted(ordered, key=place))


def lexical(
    store: Store, terms: Sequence[str], query: Query, options: GatherOptions, fetch: Fetch | None = None
) -> tuple[Ranking, ...]:
    """BM25 over the query's index terms. A query of no terms has no lexical hits."""
    read = fetch or store.fetch

    def find(kind: Kind) -> Sequence[Hit]:
        depth = options.depth(query.limit, kind)
        return search(kind, query, depth, lambda where, k: store.lexical(terms, where, k), read)

    return tuple(Ranking("lexical", kind, tuple(find(kind)) if terms else ()) for kind in query.kinds)


def vector(
    store: Store,
    embedded: Vector,
    space: Space,
    query: Query,
    options: GatherOptions,
    floor: float,
    fetch: Fetch | None = None,
) -> tuple[Ranking, ...]:
    """Cosine similarity to the embedded query; candidates below ``floor`` do not enter (R4).

    Raises: StoreMismatch when the index is of another ``space`` than the query's vector.
    """
    read = fetch or store.fetch

    def ranking(kind: Kind) -> Ranking:
        below = 0

        def near(where: Filter, k: int) -> Sequence[Hit]:
            nonlocal below
            hits = store.nearest(embedded, where, k, space=space)
            above = [hit for hit in hits if hit.score >= floor]
            below += len(hits) - len(above)
            return above

        hits = search(kind, query, options.depth(query.limit, kind), near, read)
        return Ranking("vector", kind, hits, below)

    return tuple(map(ranking, query.kinds))


def asked(query: Query) -> frozenset[EntityId]:
    """The entities that the query names: what the graph lane starts from."""
    return frozenset(entity_id(entity.key) for entity in entities.asked(query.text))


def graph(
    store: Store,
    asked: frozenset[EntityId],
    others: Callable[[], Sequence[Candidate]],
    query: Query,
    depths: GatherOptions,
    options: GraphOptions,
    fetch: Fetch | None = None,
) -> tuple[Ranking, ...]:
    """What shares an entity that was ``asked`` for, or one of the best of the other lanes' hits (R5); needs no model.

    ``others`` gives those lanes' hits, fused, best first. The first of them seed the hop; all of them are scored. A
    query without an entity that the store knows finds nothing: the names that its hits share are as a rule not its
    subject.
    """
    direct = {kind: store.mentions(sorted(asked), _named(kind, query), options.common) for kind in query.kinds}
    if not any(direct.values()):
        return tuple(Ranking("graph", kind) for kind in query.kinds)
    near = others()
    seeds = [candidate.id for candidate in near[: options.seeds]]
    named = store.entities_of(seeds)
    further = sorted(set().union(*(named.get(seed, ()) for seed in seeds)) - asked)
    mentions = {
        kind: {**known, **store.mentions(further, _named(kind, query), options.common)}
        for kind, known in direct.items()
    }
    if any(len(known.get(entity, ())) > options.common for known in mentions.values() for entity in asked):
        named = store.entities_of([candidate.id for candidate in near])
    rankings = []
    for kind, known in mentions.items():
        found = frozenset(candidate.id for candidate in near if candidate.kind == kind)
        scores = related(asked, seeds, named, known, found, options)
        depth = depths.depth(query.limit, kind)
        ordered = enumerate(settled(best(scores, found, depth), fetch or store.fetch))
        hits = [hit for rank, hit in ordered if rank < depth or hit.passage in found]
        rankings.append(Ranking("graph", kind, tuple(hits)))
    return tuple(rankings)


def _named(kind: Kind, query: Query) -> Filter:
    """The filter of one source kind together with what is found under its name."""
    return replace(scope_for(kind, query), kinds=frozenset((kind, *_ALSO.get(kind, ()))))


def temporal(
    store: Store, window: Window, query: Query, options: GatherOptions, fetch: Fetch | None = None
) -> tuple[Ranking, ...]:
    """What lies in or near the time that the query names, nearest and fullest first (R6); needs no model, no words."""
    read = fetch or store.fetch

    def find(kind: Kind) -> Sequence[Hit]:
        depth = options.depth(query.limit, kind)
        return search(kind, query, depth, lambda where, k: store.timed(window.since, window.until, where, k), read)

    return tuple(Ranking("temporal", kind, tuple(find(kind))) for kind in query.kinds)


def degradation(error: ModelError | StoreMismatch) -> Degradation:
    """What an unanswered vector lane is reported as (R16)."""
    code = error.code if isinstance(error, ModelError) else "mismatch"
    return Degradation(code, error.message, error.remedy)
