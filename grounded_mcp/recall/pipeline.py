"""The river: gather > fuse > fetch > press > min_score > shape, one call per stage.

Synchronous; a pure function of the store, the query and its ``now``. Knows nothing about faces or rendering.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from grounded_mcp.errors import ModelError, StoreMismatch
from grounded_mcp.recall import lanes
from grounded_mcp.recall.fusion import FusionOptions, fuse
from grounded_mcp.recall.lanes import GatherOptions
from grounded_mcp.recall.pressure import BoostOptions, press
from grounded_mcp.recall.shape import Shaped, ShapeOptions, shape
from grounded_mcp.stores.base import Space, Store
from grounded_mcp.stores.rules import check_space
from grounded_mcp.text import Analyzer
from grounded_mcp.tokens import Ask
from grounded_mcp.values import (
    Candidate,
    Degradation,
    Mode,
    PassageId,
    Query,
    Ranking,
    Recall,
    Stats,
    StoredPassage,
    Vector,
)


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


@dataclass(frozen=True, slots=True)
class _Gathered:
    rankings: tuple[Ranking, ...]
    words: tuple[Ask, ...]
    degradation: Degradation | None
    floor: float | None
    embed_ms: float
    db_ms: float

    @property
    def mode(self) -> Mode:
        ran = {ranking.lane for ranking in self.rankings}
        return "hybrid" if len(ran) == 2 else next(iter(ran), "lexical")


def recall(query: Query, ports: Ports, options: RecallOptions, recall_id: str) -> Recall:
    """One ranked, explained list for ``query``. Raises: StoreError; a failing model only degrades the answer."""
    started = time.perf_counter()
    gathered = _gather(query, ports, options)
    fused = fuse(gathered.rankings, options.fusion)
    found, fetch_ms = _fetch(fused, ports.store)
    pressed = [press(each, found[each.id], query, options.boosts) for each in fused if each.id in found]
    passed = [c for c in pressed if query.min_score is None or c.score >= query.min_score]
    shaped = shape(passed, query.limit, query.kinds, options.shape)
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
        stats=_stats(gathered, fused, shaped, fetch_ms, started),
        words=tuple((word.surface, word.terms) for word in gathered.words),
        fusion=options.fusion.describe(),
        floor=gathered.floor,
        fused=fused if query.trace else (),
        pruned={"minScore": len(pressed) - len(passed), **shaped.pruned},
    )


def _gather(query: Query, ports: Ports, options: RecallOptions) -> _Gathered:
    """Both lanes over every source kind. The model works while the lexical lane searches."""
    depth = options.gather.depth(query.limit)
    words = ports.analyzer.query_words(query.text)
    terms = tuple(dict.fromkeys(term for word in words for term in word.terms))
    watch = _Watch()
    waiting, fault = _begin(query, ports)
    found = lanes.lexical(ports.store, terms, query, depth) if query.mode != "vector" or fault else ()
    watch.lap("db")
    near: tuple[Ranking, ...] = ()
    floor = None
    if waiting is not None and ports.embedder is not None:
        try:
            embedded, space = waiting(), ports.embedder.space
            watch.lap("embed")
            floor = ports.embedder.floor if options.floor is None else options.floor
            near = lanes.vector(ports.store, embedded, space, query, depth, floor)
        except (ModelError, StoreMismatch) as error:
            watch.lap("embed")
            fault = lanes.degradation(error)
            found = found or lanes.lexical(ports.store, terms, query, depth)
    watch.lap("db")
    return _Gathered((*near, *found), words, fault, floor, watch.ms["embed"], watch.ms["db"])


def _begin(query: Query, ports: Ports) -> tuple[Callable[[], Vector] | None, Degradation | None]:
    """Start embedding the query, unless vectors are off, not wanted, or there is nothing to compare it with."""
    if query.mode == "lexical" or ports.embedder is None:
        return None, None
    try:
        _check_index(ports.store, ports.embedder.space)
        waiting = ports.embedder.begin(query.text)
    except (ModelError, StoreMismatch) as error:
        return None, lanes.degradation(error)
    return waiting, None


def _check_index(store: Store, wanted: Space) -> None:
    """Raises: StoreMismatch for an index of another model (R16, T5), ModelError for one without any vector yet."""
    held = store.space()
    check_space(held, wanted)
    if held is None and store.pending(1):
        raise ModelError(
            "missing", "No stored text has a vector yet.", "A running server or `grounded-mcp sync` adds them."
        )


class _Watch:
    """Milliseconds by what they were spent on. The wait for the model counts only beyond the lexical search."""

    def __init__(self) -> None:
        self.ms = {"db": 0.0, "embed": 0.0}
        self._last = time.perf_counter()

    def lap(self, spent_on: str) -> None:
        now = time.perf_counter()
        self.ms[spent_on] += (now - self._last) * 1e3
        self._last = now


def _fetch(fused: Sequence[Candidate], store: Store) -> tuple[Mapping[PassageId, StoredPassage], float]:
    """Bodies are read once, after fusion; a passage that vanished meanwhile drops out. Milliseconds besides."""
    started = time.perf_counter()
    found = store.fetch([candidate.id for candidate in fused])
    return found, (time.perf_counter() - started) * 1e3


def _stats(gathered: _Gathered, fused: Sequence[Candidate], shaped: Shaped, fetch_ms: float, started: float) -> Stats:
    total_ms = (time.perf_counter() - started) * 1e3
    return Stats(
        candidates=len(fused),
        results=len(shaped.candidates),
        embed_ms=gathered.embed_ms,
        db_ms=gathered.db_ms + fetch_ms,
        retrieval_ms=total_ms,
        total_ms=total_ms,
    )
