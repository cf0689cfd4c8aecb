"""The first stage: every lane that was asked for and can run, over every source kind.

The model works on the question while words are searched. Knows nothing about how rankings are merged, except that the
graph lane starts from the best of the others.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from grounded_mcp.errors import ModelError, StoreMismatch
from grounded_mcp.models.base import Reranker
from grounded_mcp.recall import lanes
from grounded_mcp.recall.adapt import AdaptOptions, adapted
from grounded_mcp.recall.fusion import FusionOptions, fuse
from grounded_mcp.recall.graph import GraphOptions
from grounded_mcp.recall.lanes import Fetch, GatherOptions
from grounded_mcp.recall.overlap import Scorer, rescore
from grounded_mcp.recall.temporal import Window, only_time, window
from grounded_mcp.stores.base import Space, Store
from grounded_mcp.stores.rules import check_space
from grounded_mcp.text import Analyzer
from grounded_mcp.tokens import Ask
from grounded_mcp.values import Degradation, Hit, Mode, PassageId, Query, Ranking, ScopeFilter, Vector

SAMPLE = 9
"""Best hits by which a source's passages are judged to be short."""

FEW_WAITING = 20
"""Passages without a vector that never matter: a fact that was just stated is found by its words."""


class QueryEmbedder(Protocol):
    """The bounded door to a model. ``begin`` starts embedding and returns at once; calling the result waits.

    Both raise ModelError when there will be no vector.
    """

    def begin(self, text: str) -> Callable[[], Vector]: ...

    @property
    def space(self) -> Space: ...

    @property
    def floor(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Ports:
    """What the river runs on. ``embedder`` and ``reranker`` are None where they are turned off.

    ``released`` knows when a version came out ("v2.3"), for questions that name one as a time.
    """

    store: Store
    analyzer: Analyzer
    embedder: QueryEmbedder | None
    reranker: Reranker | None = None
    released: Callable[[str], float | None] | None = None


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """What the lanes are searched with. ``floor`` None means the model's own; ``scorer`` orders what words find."""

    gather: GatherOptions
    fusion: FusionOptions
    adapt: AdaptOptions
    graph: GraphOptions
    floor: float | None
    min_coverage: float
    scorer: Literal["auto", "bm25"] | Scorer
    short_terms: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """Every ranking, and how they are to be fused for this question. ``window``: the time that it names. ``fetch``
    reads what the lanes have not looked at yet."""

    rankings: tuple[Ranking, ...]
    fusion: FusionOptions
    words: tuple[Ask, ...]
    degradation: Degradation | None
    floor: float | None
    fetch: Fetch
    window: Window | None = None

    @property
    def mode(self) -> Mode:
        """By words, by meaning, or both: the lanes without a model run in every mode."""
        ran = {ranking.lane for ranking in self.rankings}
        return "hybrid" if {"lexical", "vector"} <= ran else "vector" if "vector" in ran else "lexical"


class Watch:
    """Milliseconds by stage, in their order. The wait for the model counts only beyond the lexical search."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.ms[stage] = self.ms.get(stage, 0.0) + (now - self._last) * 1e3
        self._last = now


def gather(query: Query, ports: Ports, options: LaneOptions, watch: Watch) -> Gathered:
    """The lanes that were asked for and can run. Where only the vector lane was asked for and it cannot run, words are
    searched. A question that asks for a time and nothing else is answered by the temporal lane alone.
    """
    fetch = lanes.once(ports.store.fetch)
    named = window(query.text, query.now, ports.released)
    if named is not None and only_time(query.text, named):
        words = ports.analyzer.query_words(query.text)
        watch.lap("prepare")
        rankings = lanes.temporal(ports.store, named, query, options.gather, fetch)
        watch.lap("temporal")
        return Gathered(rankings, options.fusion, words, None, None, fetch, named)
    found = _by_words_and_meaning(query, ports, options, watch, fetch)
    rankings = found.rankings
    if named is not None:
        rankings += lanes.temporal(ports.store, named, query, options.gather, fetch)
        watch.lap("temporal")
    asked = lanes.asked(query) if options.fusion.weighs("graph") else frozenset()
    if asked:
        near = functools.partial(fuse, rankings, found.fusion)
        with ports.store.reading():
            linked = lanes.graph(ports.store, asked, near, query, options.gather, options.graph, fetch)
        rankings += linked if any(ranking.hits for ranking in linked) else ()
        watch.lap("graph")
    return replace(found, rankings=rankings, window=named)


def _by_words_and_meaning(query: Query, ports: Ports, options: LaneOptions, watch: Watch, fetch: Fetch) -> Gathered:
    with ports.store.reading():
        waiting, fault = _begin(query, ports, options.min_coverage) if query.mode != "lexical" else (None, None)
        words = ports.analyzer.query_words(query.text)
        terms = tuple(dict.fromkeys(term for word in words for term in word.terms))
        if not words:  # noise has neighbours too
            waiting = fault = None
        watch.lap("prepare")
        found = _by_words(terms, query, ports, options, fetch) if query.mode != "vector" or waiting is None else ()
        watch.lap("lexical")
    near: tuple[Ranking, ...] = ()
    floor = None
    if waiting is not None:
        try:
            embedded, space, own_floor = waiting()
            watch.lap("embed")
            floor = own_floor if options.floor is None else options.floor
            with ports.store.reading():
                near = lanes.vector(ports.store, embedded, space, query, options.gather, floor, fetch)
            watch.lap("vector")
        except (ModelError, StoreMismatch) as error:
            watch.lap("embed")
            fault = lanes.degradation(error)
            found = found or _by_words(terms, query, ports, options, fetch)
            watch.lap("lexical")
    rankings = (*near, *found)
    return Gathered(rankings, adapted(options.fusion, rankings, options.adapt), words, fault, floor, fetch)


def _by_words(
    terms: Sequence[str], query: Query, ports: Ports, options: LaneOptions, fetch: Fetch
) -> tuple[Ranking, ...]:
    found = lanes.lexical(ports.store, terms, query, options.gather, fetch)
    return tuple(_rescored(ranking, terms, fetch, options) for ranking in found)


def _rescored(ranking: Ranking, terms: Sequence[str], fetch: Fetch, options: LaneOptions) -> Ranking:
    """By the configured scorer. ``auto``: BM25, but what is short (facts, turns of talk) by overlap: BM25 would rank
    it by its length, and says most about texts that are long enough to repeat a word.
    """
    scorer = options.scorer
    if scorer == "auto":
        if ranking.kind == "doc" or not ranking.hits:  # documents are cut into pieces of a size
            return ranking
        sample = _tokens(ranking.hits[:SAMPLE], fetch)
        scorer = "overlap_idf" if _median_terms(sample.values()) <= options.short_terms else "bm25"
    return ranking if scorer == "bm25" else rescore(ranking, _tokens(ranking.hits, fetch), terms, scorer)


def _tokens(hits: Sequence[Hit], fetch: Fetch) -> dict[PassageId, str]:
    return {id_: passage.tokens for id_, passage in fetch([hit.passage for hit in hits]).items()}


def _median_terms(tokens: Iterable[str]) -> int:
    lengths = sorted(len(set(each.split())) for each in tokens)
    return lengths[len(lengths) // 2] if lengths else 0


_Waiting = Callable[[], tuple[Vector, Space, float]]
"""Waits for the query's vector; with it come its space and the model's own floor. Raises: ModelError."""


def _begin(query: Query, ports: Ports, coverage: float) -> tuple[_Waiting | None, Degradation | None]:
    """Start embedding the query; None where vectors are off, or why there is nothing to compare it with."""
    embedder = ports.embedder
    if embedder is None:
        return None, None
    try:
        _check_index(ports.store, embedder.space, coverage, _searched(query))
        waiting = embedder.begin(query.text)
    except (ModelError, StoreMismatch) as error:
        return None, lanes.degradation(error)
    return lambda: (waiting(), embedder.space, embedder.floor), None


def _searched(query: Query) -> ScopeFilter:
    """The scopes that a query looks into: none of facts where facts are not asked for, and so of the rest."""
    facts = query.scope.facts if "fact" in query.kinds else frozenset()
    others = query.scope.others if {*query.kinds} - {"fact"} else frozenset()
    return replace(query.scope, facts=facts, others=others)


def _check_index(store: Store, wanted: Space, coverage: float, within: ScopeFilter) -> None:
    """Raises: StoreMismatch for an index of another model (R16, T5), ModelError while too few of the passages that
    are searched have a vector: another project that waits for its own is no reason.

    The passages that have one would stand above all others, whatever the question: 96 of 7,473 embedded cost 7 of 28
    right first results.
    """
    held, waiting = store.space(), store.waiting(within)
    check_space(held, wanted)
    if waiting <= FEW_WAITING and (held or not waiting):
        return
    total = store.passages(within)
    if waiting > (1.0 - coverage) * total:
        raise ModelError(
            "missing",
            f"{waiting:,} of {total:,} stored passages have no vector yet, so only words were searched.",
            "A running server or `grounded-mcp sync` adds them.",
        )
