"""A second opinion on the head of the list: a model that reads query and text together replaces what fusion said (R15).

Pure but for the reranker it is given, which gets texts and no store. Knows nothing about models, time or limits.
Source of the rules: the parts "The rerank window" and "The score, and cutting off on it" of the recall page. Every
candidate's score is the number it is ordered by: the calibrated value of a reranked one, times its nudges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grounded_mcp.errors import ModelError
from grounded_mcp.models.base import Reranker
from grounded_mcp.recall.shape import SCORE_DIGITS
from grounded_mcp.stores.rules import text_to_embed
from grounded_mcp.values import Candidate, Degradation, Term


@dataclass(frozen=True, slots=True)
class RerankOptions:
    """[recall.rerank]. ``window``: candidates that are reranked; 0 means twice the candidates a lane may bring."""

    window: int

    def size(self, depth: int) -> int:
        return self.window or 2 * depth


@dataclass(frozen=True, slots=True)
class Reranked:
    """The candidates, best first where they were reranked, else as they came.

    ``window``: candidates that may be reranked, 0 without a reranker; ``count``: those that were, by ``model``.
    ``degradation``: why none was, although there is a reranker.
    """

    candidates: tuple[Candidate, ...]
    window: int = 0
    count: int = 0
    model: str | None = None
    degradation: Degradation | None = None


def rerank(
    pressed: Sequence[Candidate], query: str, reranker: Reranker | None, options: RerankOptions, depth: int
) -> Reranked:
    """The stage between press and min_score. ``depth``: candidates per lane and source (R1). Raises nothing: where the
    reranker has no answer the order that was there stands, and the result says why.
    """
    if reranker is None:
        return Reranked(tuple(pressed))
    window = options.size(depth)
    ordered = sorted(pressed, key=_falling)
    head, tail = ordered[:window], ordered[window:]
    if not head:
        return Reranked((), window)
    try:
        logits = reranker.scores(query, [_text(candidate) for candidate in head])
        model = reranker.fingerprint
    except ModelError as error:
        why = Degradation(error.code, f"rerank: {error.code}. {error.message}", error.remedy)
        return Reranked(tuple(pressed), window, degradation=why)
    return Reranked(reordered(head, tail, logits), window, len(head), model)


def reordered(head: Sequence[Candidate], tail: Sequence[Candidate], logits: Sequence[float]) -> tuple[Candidate, ...]:
    """``head`` by calibrated score times nudges, best first, then ``tail`` in its order. One finite logit per candidate
    of ``head``.

    What was not reranked gets evenly falling parts of the lowest score of ``head``, as its one term: its own is on
    another scale, and would put it above what the model has read.
    """
    scored = []
    for candidate, logit in zip(head, logits, strict=True):
        value = calibrated(logit)
        factors = math.prod(nudge.factor for nudge in candidate.nudges)
        scored.append(candidate._replace(reranked=value, score=value * factors))
    lowest = min((candidate.score for candidate in scored), default=1.0)
    return (*sorted(scored, key=_falling), *(_behind(lowest, at, len(tail), each) for at, each in enumerate(tail)))


def _behind(lowest: float, at: int, count: int, candidate: Candidate) -> Candidate:
    term = Term("not reranked", lowest, (count - at) / (count + 1))
    return candidate._replace(score=term.weight * term.value, terms=(term,))


def calibrated(logit: float) -> float:
    """The logistic function: a raw logit on 0..1. Two models' logits are on two scales; so are their scores then."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    grown = math.exp(logit)  # of a negative number: exp(-logit) would overflow
    return grown / (1.0 + grown)


def both(one: Degradation | None, other: Degradation | None) -> Degradation | None:
    """Two reasons as one, under the code of the first."""
    if one is None or other is None:
        return one or other
    return Degradation(one.code, f"{one.reason} {one.remedy} {other.reason}", other.remedy)


def _falling(candidate: Candidate) -> float:
    """Sorts best first; equal scores keep the order they had, which fusion made total."""
    return -round(candidate.score, SCORE_DIGITS)


def _text(candidate: Candidate) -> str:
    """What the reranker reads: what the embedder read."""
    if candidate.found is None:
        raise ValueError("rerank runs after fetch")
    return text_to_embed(candidate.found.item.title, candidate.found.passage.heading, candidate.found.passage.body)
