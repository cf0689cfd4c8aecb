"""Rankings of several lanes become one score per passage. Pure; fusion adds, and only adds.

``rrf`` looks at positions, ``normalized`` at the lanes' own scores. Knows nothing about items, boosts or limits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grounded_mcp.values import Candidate, Kind, LaneName, PassageId, Ranking, Vote

FusionMode = Literal["rrf", "normalized"]
Normalization = Literal["zscore", "min_max"]

_ALIKE = 1e-12
"""A spread below this is rounding: the scores are equal."""


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """[recall.fusion] and [recall.fusion.weights]. ``k`` is at least 1."""

    mode: FusionMode
    k: int
    normalization: Normalization
    lexical_weight: float
    vector_weight: float

    def describe(self) -> dict[str, str | float]:
        """What is in force, as a trace reports it: derived, never stated twice (R13)."""
        if self.mode == "rrf":
            return {"algorithm": "rrf", "k": self.k}
        weights = {"lexical": self.lexical_weight, "vector": self.vector_weight}
        return {"algorithm": "normalized", "normalization": self.normalization, **weights}

    def weight(self, lane: LaneName) -> float:
        return {"lexical": self.lexical_weight, "vector": self.vector_weight}[lane]


@dataclass(frozen=True, slots=True)
class _Arm:
    """One lane over all source kinds: its hits on a common scale, what an item it did not find has, its weight.

    Weights sum to 1 over the arms that found anything.
    """

    values: Mapping[PassageId, float]
    absent: float
    weight: float = 0.0

    def share(self, id_: PassageId) -> float:
        return self.weight * self.values.get(id_, self.absent)


def fuse(rankings: Sequence[Ranking], options: FusionOptions) -> tuple[Candidate, ...]:
    """Candidates by fused score, best first, ties by passage id. Every hit of every ranking is in the result.

    ``fused`` is the sum of the votes' values; with z-scores, the logistic function of that sum.
    """
    found, kinds = _found(rankings)
    poll = _POLLS[options.mode](rankings, options)
    scale = _logistic if options.mode == "normalized" and options.normalization == "zscore" else float
    fused = []
    for id_, lanes in found.items():
        votes = poll(id_, lanes)
        score = scale(math.fsum([vote.value for vote in votes]))
        fused.append(Candidate(id=id_, kind=kinds[id_], fused=score, votes=votes, score=score))
    return tuple(sorted(fused, key=lambda c: (-round(c.fused, 9), c.id)))


_Lanes = Mapping[LaneName, tuple[int, float]]
"""Where one passage was found: rank and native score by lane."""
_Poll = Callable[[PassageId, _Lanes], tuple[Vote, ...]]


def _found(
    rankings: Sequence[Ranking],
) -> tuple[dict[PassageId, dict[LaneName, tuple[int, float]]], dict[PassageId, Kind]]:
    found: dict[PassageId, dict[LaneName, tuple[int, float]]] = defaultdict(dict)
    kinds: dict[PassageId, Kind] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking.hits):
            kinds[hit.passage] = ranking.kind
            found[hit.passage][ranking.lane] = (rank, hit.score)
    return found, kinds


def _rrf(_rankings: Sequence[Ranking], options: FusionOptions) -> _Poll:
    """1 / (k + rank), 0-based ranks within a source kind (Recall & ranking page, "The fusion")."""

    def poll(_id: PassageId, lanes: _Lanes) -> tuple[Vote, ...]:
        return tuple([Vote(lane, rank, native, 1.0 / (options.k + rank)) for lane, (rank, native) in lanes.items()])

    return poll


def _normalized(rankings: Sequence[Ranking], options: FusionOptions) -> _Poll:
    """Each lane's scores on one scale, weighted and averaged, on 0..1 (R7).

    z-scores are averaged and passed through the logistic function; min-max values already lie on 0..1.
    """
    arms = _arms(rankings, options)

    def poll(id_: PassageId, lanes: _Lanes) -> tuple[Vote, ...]:
        votes = []
        for lane, arm in arms.items():
            rank, native = lanes.get(lane, (None, None))
            votes.append(Vote(lane, rank, native, arm.share(id_)))
        return tuple(votes)

    return poll


def _arms(rankings: Sequence[Ranking], options: FusionOptions) -> dict[LaneName, _Arm]:
    found: dict[LaneName, dict[PassageId, float]] = defaultdict(dict)
    for ranking in rankings:
        if ranking.hits:
            found[ranking.lane].update((hit.passage, hit.score) for hit in ranking.hits)
    total = math.fsum(map(options.weight, found)) or 1.0  # all weights 0: every item is worth the same
    scale = _SCALES[options.normalization]
    return {lane: replace(scale(native), weight=options.weight(lane) / total) for lane, native in found.items()}


def _zscore(native: Mapping[PassageId, float]) -> _Arm:
    """(score - mean) / standard deviation; an absent item gets the arm's minimum.

    Where all scores are equal a z-score is undefined: found counts 1 and absent 0, so that a single strong
    candidate still stands above what the arm did not find.
    """
    mean = math.fsum(native.values()) / len(native)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in native.values()) / len(native))
    if deviation < _ALIKE:
        return _Arm(dict.fromkeys(native, 1.0), 0.0)
    values = {id_: (score - mean) / deviation for id_, score in native.items()}
    return _Arm(values, min(values.values()))


def _min_max(native: Mapping[PassageId, float]) -> _Arm:
    """(score - min) / (max - min); all equal counts 1; absent counts 0, which is what the worst candidate has."""
    low, high = min(native.values()), max(native.values())
    if high - low < _ALIKE:
        return _Arm(dict.fromkeys(native, 1.0), 0.0)
    return _Arm({id_: (score - low) / (high - low) for id_, score in native.items()}, 0.0)


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


_POLLS: Mapping[FusionMode, Callable[[Sequence[Ranking], FusionOptions], _Poll]] = {
    "rrf": _rrf,
    "normalized": _normalized,
}
_SCALES: Mapping[Normalization, Callable[[Mapping[PassageId, float]], _Arm]] = {"zscore": _zscore, "min_max": _min_max}
