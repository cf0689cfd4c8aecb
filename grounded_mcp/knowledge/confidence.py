"""How far a memory is to be trusted, and why: from its evidence, its age and its script to one object (P3). Pure.

Source: the "Confidence, not just a ranking" part of the project-memory page; the formula of the evidence score and
the order of the states are the product's rule P3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from grounded_mcp.trust import Confidence, Rationale, ScriptState, State
from grounded_mcp.values import Evidence, EvidenceKind, Tally

__all__ = ["Confidence", "ConfidenceOptions", "ScriptState", "State", "Weighed", "add_up", "judge", "state_of", "weigh"]

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ConfidenceOptions:
    """[confidence]. The first three weigh evidence; the rest multiply a fused score, where 1 means no effect.

    ``evidence_boost`` is the ceiling, reached at an evidence score of 1. By reciprocal ranks the best hit of two lanes
    is worth three times the 30th of one, so that none of the factors is far below a half: they tilt, and do not rank.
    """

    verified_outcome: float = 1.0
    stated: float = 1.0
    diagnostic_episode: float = 0.25
    recency_decay: float = 0.5
    recency_half_life_days: float = 365.0
    evidence_boost: float = 1.5
    stale_script: float = 0.6
    contradicted: float = 0.4

    @property
    def weights(self) -> Mapping[EvidenceKind, float]:
        return {
            "verified outcome": self.verified_outcome,
            "stated": self.stated,
            "diagnostic episode": self.diagnostic_episode,
        }


class Weighed(NamedTuple):
    """Evidence added up: how many records speak for and against, their weights, and what the newest proof says."""

    support_count: int = 0
    contradiction_count: int = 0
    supports: float = 0.0
    contradicts: float = 0.0
    refuted: bool = False
    """Whether the newest verified outcome contradicts."""

    @property
    def score(self) -> float:
        """s / (s + c + 1) on 0..1 (P3): one success is not yet certainty."""
        return self.supports / (self.supports + self.contradicts + 1.0)


def weigh(evidence: Iterable[Evidence], options: ConfidenceOptions) -> Weighed:
    """Each record counts by its kind."""
    return add_up(tally(evidence), options)


def tally(evidence: Iterable[Evidence]) -> tuple[Tally, ...]:
    """Records that say the same in the same way, counted."""
    times: dict[tuple[EvidenceKind, bool], list[float]] = {}
    for each in evidence:
        times.setdefault((each.kind, each.supports), []).append(each.at)
    return tuple(Tally(kind, supports, len(at), max(at)) for (kind, supports), at in times.items())


def add_up(tallies: Iterable[Tally], options: ConfidenceOptions) -> Weighed:
    """What counted evidence weighs. Of a success and a failure at the same time the failure is the newer one."""
    counts, weighs = {True: 0, False: 0}, {True: 0.0, False: 0.0}
    proven = {True: -math.inf, False: -math.inf}
    weights = options.weights
    for kind, supports, times, newest in tallies:
        counts[supports] += times
        weighs[supports] += times * weights[kind]
        if kind == "verified outcome":
            proven[supports] = max(proven[supports], newest)
    refuted = proven[False] > -math.inf and proven[False] >= proven[True]
    return Weighed(counts[True], counts[False], weighs[True], weighs[False], refuted)


def state_of(weighed: Weighed, scripts: Iterable[ScriptState]) -> State:
    """``contradicted`` before ``stale`` before ``active``."""
    if weighed.refuted or (weighed.contradicts > 0 and weighed.contradicts >= weighed.supports):
        return "contradicted"
    return "stale" if any(script in ("stale", "missing") for script in scripts) else "active"


def judge(
    weighed: Weighed,
    scripts: Iterable[ScriptState],
    updated_at: float,
    now: float,
    options: ConfidenceOptions,
    *,
    fusion_score: float | None = None,
    ranks: Mapping[str, int] | None = None,
    similarity: float | None = None,
) -> Confidence:
    """The confidence in an item. ``ranks``: 0-based, by lane; ``similarity``: cosine; the distance is 1 minus that."""
    standing = tuple(scripts)
    state = state_of(weighed, standing)
    age_days = max(0.0, now - updated_at) / DAY
    recency = options.recency_decay ** (age_days / options.recency_half_life_days)
    boost = 1.0 + (options.evidence_boost - 1.0) * weighed.score
    is_stale = any(script in ("stale", "missing") for script in standing)
    staleness = options.stale_script if is_stale else 1.0
    contradiction = options.contradicted if state == "contradicted" else 1.0
    final = None if fusion_score is None else fusion_score * recency * boost * staleness * contradiction
    ranks = ranks or {}
    rationale = Rationale(
        lexical_rank=ranks.get("lexical"),
        vector_rank=ranks.get("vector"),
        vector_distance=None if similarity is None else 1.0 - similarity,
        fusion_score=fusion_score,
        recency_score=recency,
        evidence_boost=boost,
        script_staleness_penalty=staleness,
        contradiction_penalty=contradiction,
        final_score=final,
    )
    return Confidence(
        evidence_score=weighed.score,
        support_count=weighed.support_count,
        contradiction_count=weighed.contradiction_count,
        updated_at=updated_at,
        state=state,
        rationale=rationale,
    )
