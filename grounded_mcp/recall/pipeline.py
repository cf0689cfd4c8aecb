"""The river: gather > fuse > fetch > press > min_score > shape, one call per stage.

Synchronous; a pure function of the store, the query and its ``now``. Knows nothing about faces or rendering.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from grounded_mcp.errors import ModelError, StoreMismatch
from grounded_mcp.recall import lanes
from grounded_mcp.recall.fusion import FusionOptions, fuse
from grounded_mcp.recall.lanes import GatherOptions
from grounded_mcp.recall.pressure import BoostOptions, press
from grounded_mcp.recall.shape import ShapeOptions, shape
from grounded_mcp.stores.base import Space, Store
from grounded_mcp.stores.rules import check_space
from grounded_mcp.text import Analyzer
from grounded_mcp.tokens import Ask
from grounded_mcp.values import (
    Degradation,
    Mode,
    Query,
    Ranking,
    Recall,
    Stats,
    Vector,
)

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
    """What the river runs on. ``embedder`` is None where vectors are turned off: the lane is simply not there."""

    store: Store
    analyzer: Analyzer
    embedder: QueryEmbedder | None


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Every stage's options. ``floor`` None means the model's own."""

    gather: GatherOptions
    fusion: FusionOptions
    boosts: BoostOptions
    shape: ShapeOptions
    floor: float | None
    min_coverage: float


@dataclass(frozen=True, slots=True)
class _Gathered:
    rankings: tuple[Ranking, ...]
    words: tuple[Ask, ...]
    degradation: Degradation | None
    floor: float | None

    @property
    def mode(self) -> Mode:
        ran = {ranking.lane for ranking in self.rankings}
        return "hybrid" if len(ran) == 2 else next(iter(ran), "lexical")


def recall(query: Query, ports: Ports, options: RecallOptions, recall_id: str) -> Recall:
    """One ranked, explained list for ``query``. Raises: StoreError; a failing model only degrades the answer."""
    watch = _Watch()
    gathered = _gather(query, ports, options, watch)
    fused = fuse(gathered.rankings, options.fusion)
    watch.lap("fuse")
    found = ports.store.fetch([candidate.id for candidate in fused])  # a passage that vanished meanwhile drops out
    watch.lap("fetch")
    pressed = [press(each, found[each.id], query, options.boosts) for each in fused if each.id in found]
    passed = [c for c in pressed if query.min_score is None or c.score >= query.min_score]
    watch.lap("press")
    shaped = shape(passed, query.limit, query.kinds, options.shape)
    watch.lap("shape")
    return Recall(
        id=recall_id,
        query=query,
        candidates=shaped.candidates,
        rankings=gathered.rankings,
        mode=gathered.mode,
        degradation=gathered.degradation,
        by_source=shaped.by_source,
        available=shaped.available,
        truncated=len(shaped.candidates) < shaped.available,
        stats=_stats(len(fused), len(shaped.candidates), watch.ms),
        words=tuple((word.surface, word.terms) for word in gathered.words),
        fusion=options.fusion.describe(),
        floor=gathered.floor,
        fused=fused if query.trace else (),
        pruned={
            "floor": sum(ranking.below for ranking in gathered.rankings),
            "gone": len(fused) - len(pressed),
            "minScore": len(pressed) - len(passed),
            **shaped.pruned,
        },
    )


def _gather(query: Query, ports: Ports, options: RecallOptions, watch: _Watch) -> _Gathered:
    """The lanes that were asked for and can run, over every source kind. Where only the vector lane was asked for
    and it cannot run, words are searched. The model works while the lexical lane searches.
    """
    depth = options.gather.depth(query.limit)
    waiting, fault = _begin(query, ports, options.min_coverage) if query.mode != "lexical" else (None, None)
    words = ports.analyzer.query_words(query.text)
    terms = tuple(dict.fromkeys(term for word in words for term in word.terms))
    if not words:  # noise has neighbours too
        waiting = fault = None
    watch.lap("prepare")
    found = lanes.lexical(ports.store, terms, query, depth) if query.mode != "vector" or waiting is None else ()
    watch.lap("lexical")
    near: tuple[Ranking, ...] = ()
    floor = None
    if waiting is not None:
        try:
            embedded, space, own_floor = waiting()
            watch.lap("embed")
            floor = own_floor if options.floor is None else options.floor
            near = lanes.vector(ports.store, embedded, space, query, depth, floor)
            watch.lap("vector")
        except (ModelError, StoreMismatch) as error:
            watch.lap("embed")
            fault = lanes.degradation(error)
            found = found or lanes.lexical(ports.store, terms, query, depth)
            watch.lap("lexical")
    return _Gathered((*near, *found), words, fault, floor)


_Waiting = Callable[[], tuple[Vector, Space, float]]
"""Waits for the query's vector; with it come its space and the model's own floor. Raises: ModelError."""


def _begin(query: Query, ports: Ports, coverage: float) -> tuple[_Waiting | None, Degradation | None]:
    """Start embedding the query; None where vectors are off, or why there is nothing to compare it with."""
    embedder = ports.embedder
    if embedder is None:
        return None, None
    try:
        _check_index(ports.store, embedder.space, coverage)
        waiting = embedder.begin(query.text)
    except (ModelError, StoreMismatch) as error:
        return None, lanes.degradation(error)
    return lambda: (waiting(), embedder.space, embedder.floor), None


def _check_index(store: Store, wanted: Space, coverage: float) -> None:
    """Raises: StoreMismatch for an index of another model (R16, T5), ModelError while too few passages have a vector.

    The passages that have one would stand above all others, whatever the question: 96 of 7,473 embedded cost 7 of 28
    right first results.
    """
    held, waiting = store.space(), store.waiting()
    check_space(held, wanted)
    if waiting <= FEW_WAITING and (held or not waiting):
        return
    total = sum(store.info().vectors.values())
    if waiting > (1.0 - coverage) * total:
        raise ModelError(
            "missing",
            f"{waiting:,} of {total:,} stored passages have no vector yet, so only words were searched.",
            "A running server or `grounded-mcp sync` adds them.",
        )


class _Watch:
    """Milliseconds by stage, in their order. The wait for the model counts only beyond the lexical search."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.ms[stage] = self.ms.get(stage, 0.0) + (now - self._last) * 1e3
        self._last = now


_DATABASE = ("lexical", "vector", "fetch")
_AFTER_RETRIEVAL = ("press", "shape")


def _stats(candidates: int, results: int, ms: Mapping[str, float]) -> Stats:
    total_ms = sum(ms.values())
    return Stats(
        candidates=candidates,
        results=results,
        embed_ms=ms.get("embed", 0.0),
        db_ms=sum(ms.get(stage, 0.0) for stage in _DATABASE),
        retrieval_ms=total_ms - sum(ms[stage] for stage in _AFTER_RETRIEVAL),
        total_ms=total_ms,
        timings=ms,
    )
