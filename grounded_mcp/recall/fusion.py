"""Rankings of several lanes become one score per passage. Pure; fusion adds, and only adds.

==============  ==========================================================================================
``rrf``         positions: the sum of 1 / (k + rank)
``normalized``  the lanes' own scores, each lane on one scale, averaged by weight, on 0..1
``hybrid``      the mean of the two, with the same weights, each on 0..1
``blend``       the similarity of the Onadit page, on the scale of the cosine; ``recall.blend`` adds the rest
==============  ==========================================================================================

Works over any number of lanes. Knows nothing about items, boosts or limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from grounded_mcp.values import Candidate, Hit, Kind, LaneName, PassageId, Ranking, Vote

FusionMode = Literal["rrf", "normalized", "hybrid", "blend"]
Normalization = Literal["zscore", "min_max"]

_ALIKE = 1e-12
"""A spread below this is rounding: the scores are equal."""


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """[recall.fusion] and [recall.fusion.weights]. ``k`` is at least 1.

    ``weights``, by lane: for ``normalized`` and ``hybrid``, where 0 switches a lane off (its hits stay in the list)
    and a lane that is not named weighs 1. The pages' formulas, ``rrf`` and ``blend``, have no weights.
    """

    mode: FusionMode
    k: int
    normalization: Normalization
    weights: Mapping[str, float]

    def weighs(self, lane: LaneName) -> bool:
        """Whether a lane beside the two of the page has a say: never in its own formulas, which would count it full."""
        return self.mode in ("normalized", "hybrid") and self.weights.get(lane, 1.0) > 0

    def describe(self, configured: FusionOptions | None = None) -> dict[str, str | float]:
        """What is in force, as a trace reports it: derived, never stated twice (R13).

        ``configured``: what it was made from; a weight that differs from its own there is told beside it.
        """
        scaled = {"normalization": self.normalization, **self.weights}
        parts: Mapping[FusionMode, Mapping[str, str | float]] = {
            "rrf": {"k": self.k},
            "normalized": scaled,
            "hybrid": {"k": self.k, **scaled},
            "blend": {},
        }
        before = configured.weights if configured else self.weights
        changed = {f"{lane}Configured": at for lane, at in before.items() if self.weights.get(lane) != at}
        return {"algorithm": self.mode, **parts[self.mode], **changed}


_Places = Sequence[tuple[int, Hit]]
_Lanes = Mapping[LaneName, _Places]
"""The lanes that found anything: hits with their 0-based ranks within a source kind."""


class _Ballot(NamedTuple):
    """One lane's votes, and what stands for one where it did not find a passage."""

    votes: Mapping[PassageId, Vote]
    absent: Vote | None = None


_Count = Callable[[Sequence[Vote]], float]
_Poll = Callable[[_Lanes, FusionOptions], tuple[Sequence[_Ballot], _Count]]


def fuse(rankings: Sequence[Ranking], options: FusionOptions) -> tuple[Candidate, ...]:
    """Candidates by fused score, best first, ties by their places in the lanes. Every hit of every ranking
    is in the result.

    ``fused`` follows from the votes alone: their sum for ``rrf`` and min-max, the logistic function of their sum
    for z-scores, the greatest for ``blend``; ``hybrid`` averages that with its votes' ranks (``_hybrid``).
    """
    lanes, kinds = _found(rankings)
    ballots, count = _POLLS[options.mode](lanes, options)
    fused = []
    for id_, kind in kinds.items():
        votes = tuple([vote for ballot in ballots if (vote := ballot.votes.get(id_, ballot.absent))])
        score = count(votes)
        fused.append(Candidate(id_, kind, score, votes, score=score))
    return tuple(sorted(fused, key=lambda c: (-round(c.fused, 9), c.kind, _found_at(c.votes))))


def _found_at(votes: Sequence[Vote]) -> list[tuple[LaneName, int]]:
    """No two passages of a kind have the same ones; unlike their ids, they do not depend on who was stored first."""
    return sorted([(vote.lane, vote.rank) for vote in votes if vote.rank is not None])


def _found(rankings: Sequence[Ranking]) -> tuple[dict[LaneName, list[tuple[int, Hit]]], dict[PassageId, Kind]]:
    lanes: dict[LaneName, list[tuple[int, Hit]]] = {}
    kinds: dict[PassageId, Kind] = {}
    for ranking in rankings:
        if ranking.hits:
            kinds.update(dict.fromkeys([hit.passage for hit in ranking.hits], ranking.kind))
            lanes.setdefault(ranking.lane, []).extend(enumerate(ranking.hits))
    return lanes, kinds


def _votes(lane: LaneName, places: _Places, values: Sequence[float]) -> dict[PassageId, Vote]:
    pairs = zip(places, values, strict=True)
    return {id_: Vote(lane, rank, native, value) for (rank, (id_, native)), value in pairs}


def _sum(votes: Sequence[Vote]) -> float:
    return math.fsum([vote.value for vote in votes])


# --- by position ------------------------------------------------------------------------------------------


def _rrf(lanes: _Lanes, options: FusionOptions) -> tuple[Sequence[_Ballot], _Count]:
    """1 / (k + rank), 0-based ranks within a source kind (Recall & ranking page, "The fusion")."""
    k = options.k
    return [_Ballot(_votes(lane, at, [1.0 / (k + rank) for rank, _ in at])) for lane, at in lanes.items()], _sum


# --- by the lanes' own scores -----------------------------------------------------------------------------


def _normalized(lanes: _Lanes, options: FusionOptions) -> tuple[Sequence[_Ballot], _Count]:
    """Each lane's scores on one scale, weighted and averaged, on 0..1 (R7).

    z-scores are averaged and passed through the logistic function; min-max values already lie on 0..1.
    """
    shares = _shares(lanes, options)
    ballots = []
    for lane, places in lanes.items():
        values, absent = _SCALES[options.normalization]([hit.score for _, hit in places])
        share = shares[lane]
        votes = _votes(lane, places, [share * value for value in values])
        ballots.append(_Ballot(votes, Vote(lane, None, None, share * absent)))
    return ballots, _logistic_sum if options.normalization == "zscore" else _sum


def _shares(lanes: _Lanes, options: FusionOptions) -> Mapping[LaneName, float]:
    """The weights of the lanes that found anything, as parts of 1; all 0 stay 0: then every item is worth the same."""
    weights = {lane: options.weights.get(lane, 1.0) for lane in lanes}
    total = math.fsum(weights.values()) or 1.0
    return {lane: weight / total for lane, weight in weights.items()}


def _zscore(native: Sequence[float]) -> tuple[Sequence[float], float]:
    """(score - mean) / standard deviation; an absent item gets the lane's minimum.

    Where all scores are equal a z-score is undefined: found counts 1 and absent 0, so that a single strong
    candidate still stands above what the lane did not find.
    """
    mean = math.fsum(native) / len(native)
    deviation = math.sqrt(math.fsum([(score - mean) ** 2 for score in native]) / len(native))
    if deviation < _ALIKE:
        return [1.0] * len(native), 0.0
    values = [(score - mean) / deviation for score in native]
    return values, min(values)


def _min_max(native: Sequence[float]) -> tuple[Sequence[float], float]:
    """(score - min) / (max - min); all equal counts 1; absent counts 0, which is what the worst candidate has."""
    low, high = min(native), max(native)
    if high - low < _ALIKE:
        return [1.0] * len(native), 0.0
    return [(score - low) / (high - low) for score in native], 0.0


def _logistic_sum(votes: Sequence[Vote]) -> float:
    return 1.0 / (1.0 + math.exp(-_sum(votes)))


# --- by both ----------------------------------------------------------------------------------------------


def _hybrid(lanes: _Lanes, options: FusionOptions) -> tuple[Sequence[_Ballot], _Count]:
    """The mean of ``normalized`` and of the reciprocal ranks over the most they can be: share x k / (k + rank).

    A vote's value is its part in the first; the second follows from its rank.
    """
    ballots, normalized = _normalized(lanes, options)
    shares, k = _shares(lanes, options), options.k

    def count(votes: Sequence[Vote]) -> float:
        ranks = [shares[vote.lane] * k / (k + vote.rank) for vote in votes if vote.rank is not None]
        return (normalized(votes) + math.fsum(ranks)) / 2.0

    return ballots, count


# --- by similarity ----------------------------------------------------------------------------------------


def _blend(lanes: _Lanes, _options: FusionOptions) -> tuple[Sequence[_Ballot], _Count]:
    """The cosine of a vector hit; BM25 / best BM25 x the best cosine for a lexical hit; of both, the larger.

    Best is over all source kinds. Where nothing was found by meaning, there is no scale to bring words to, and the
    best BM25 counts 1. What only another lane found has no similarity. (Onadit page, "The score".)
    """
    cosines = [hit.score for _, hit in lanes.get("vector", ())]
    scale = _unit(max(cosines)) if cosines else 1.0
    best = max([hit.score for _, hit in lanes.get("lexical", ())], default=0.0)
    similar: Mapping[str, Callable[[float], float]] = {
        "vector": _unit,
        "lexical": lambda native: scale * (_unit(native / best) if best > 0.0 else 1.0),
    }
    ballots = []
    for lane, places in lanes.items():
        measure = similar.get(lane, _none)
        ballots.append(_Ballot(_votes(lane, places, [measure(hit.score) for _, hit in places])))
    return ballots, lambda votes: max([vote.value for vote in votes])


def _unit(x: float) -> float:
    return min(1.0, max(0.0, x))


def _none(_native: float) -> float:
    return 0.0


_POLLS: Mapping[FusionMode, _Poll] = {"rrf": _rrf, "normalized": _normalized, "hybrid": _hybrid, "blend": _blend}
_SCALES: Mapping[Normalization, Callable[[Sequence[float]], tuple[Sequence[float], float]]] = {
    "zscore": _zscore,
    "min_max": _min_max,
}
