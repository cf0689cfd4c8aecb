"""The river: gather > fuse > fetch > press > rerank > min_score > shape, one call per stage.

Synchronous; a pure function of the store, the query and its ``now``. Knows nothing about faces or rendering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grounded_mcp.recall.blend import BlendOptions, blend
from grounded_mcp.recall.fusion import fuse
from grounded_mcp.recall.gather import FEW_WAITING, Gathered, LaneOptions, Ports, QueryEmbedder, Watch, gather
from grounded_mcp.recall.pressure import BoostOptions, press
from grounded_mcp.recall.rerank import Reranked, RerankOptions, both, rerank
from grounded_mcp.recall.shape import ShapeOptions, shape
from grounded_mcp.recall.temporal import TemporalOptions, Window, nudge
from grounded_mcp.values import Candidate, Query, Recall, Stats, StoredPassage

__all__ = ["FEW_WAITING", "Ports", "QueryEmbedder", "RecallOptions", "recall"]


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Every stage's options."""

    lanes: LaneOptions
    boosts: BoostOptions
    temporal: TemporalOptions
    blend: BlendOptions
    rerank: RerankOptions
    shape: ShapeOptions


Press = Callable[[Sequence[tuple[Candidate, StoredPassage]]], list[Candidate]]
"""What weighs on everything that was found, in the place of the boosts: fused candidates to scored ones."""


def recall(query: Query, ports: Ports, options: RecallOptions, recall_id: str, weigh: Press | None = None) -> Recall:
    """One ranked, explained list for ``query``. Raises: StoreError; a failing model only degrades the answer."""
    watch = Watch()
    gathered = gather(query, ports, options.lanes, watch)
    fused = fuse(gathered.rankings, gathered.fusion)
    watch.lap("fuse")
    found = gathered.fetch([candidate.id for candidate in fused])  # a passage that vanished meanwhile drops out
    watch.lap("fetch")
    here = [(each, found[each.id]) for each in fused if each.id in found]
    pressed = weigh(here) if weigh else _pressed(here, query, gathered, options)
    watch.lap("press")
    depth = options.lanes.gather.depth(query.limit)
    judged = rerank(pressed, query.text, ports.reranker, options.rerank, depth)
    watch.lap("rerank")
    passed = [c for c in judged.candidates if query.min_score is None or c.score >= query.min_score]
    shaped = shape(passed, query.limit, query.kinds, options.shape)
    watch.lap("shape")
    return Recall(
        id=recall_id,
        query=query,
        candidates=shaped.candidates,
        rankings=gathered.rankings,
        mode=gathered.mode,
        degradation=both(gathered.degradation, judged.degradation),
        by_source=shaped.by_source,
        available=shaped.available,
        truncated=len(shaped.candidates) < shaped.available,
        stats=_stats(len(fused), len(shaped.candidates), judged, watch.ms),
        words=tuple((word.surface, word.terms) for word in gathered.words),
        fusion=gathered.fusion.describe(options.lanes.fusion),
        floor=gathered.floor,
        aside=_aside(gathered.window, judged),
        fused=fused if query.trace else (),
        pruned={
            "floor": sum(ranking.below for ranking in gathered.rankings),
            "gone": len(fused) - len(pressed),
            "minScore": len(judged.candidates) - len(passed),
            **shaped.pruned,
        },
    )


def _pressed(
    here: Sequence[tuple[Candidate, StoredPassage]], query: Query, gathered: Gathered, options: RecallOptions
) -> list[Candidate]:
    """Everything that was found, with what weighs on it: multipliers, or the blend's addends.

    Where the question names a time, that is what counts, and not how long ago it is.
    """
    if options.lanes.fusion.mode == "blend":
        return [blend(each, passage, query.now, options.blend) for each, passage in here]
    window = gathered.window
    if window is None:
        return [press(each, passage, query, options.boosts) for each, passage in here]
    boosts = replace(options.boosts, session_decay=1.0, session_decay_alone=1.0)
    return [press(each, passage, query, boosts, (nudge(passage, window, options.temporal),)) for each, passage in here]


def _aside(named: Window | None, judged: Reranked) -> dict[str, dict[str, str | float]]:
    """What a trace tells besides, as ``Recall.aside`` says it."""
    told: dict[str, dict[str, str | float]] = {}
    if named is not None:
        told["time"] = {"words": named.words, "since": named.since, "until": named.until}
    if judged.window:
        reason = judged.degradation.reason if judged.degradation else None
        told["rerank"] = {name: said for name, said in (("model", judged.model), ("reason", reason)) if said}
    return told


_DATABASE = ("lexical", "vector", "graph", "temporal", "fetch")
_AFTER_RETRIEVAL = ("press", "rerank", "shape")


def _stats(candidates: int, results: int, judged: Reranked, ms: Mapping[str, float]) -> Stats:
    total_ms = sum(ms.values())
    return Stats(
        candidates=candidates,
        rerank_window=judged.window,
        rerank_candidates=judged.count,
        results=results,
        embed_ms=ms.get("embed", 0.0),
        db_ms=sum(ms.get(stage, 0.0) for stage in _DATABASE),
        retrieval_ms=total_ms - sum(ms[stage] for stage in _AFTER_RETRIEVAL),
        rerank_ms=ms["rerank"] if judged.window else 0.0,
        total_ms=total_ms,
        timings=ms,
    )
