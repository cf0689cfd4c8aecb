"""One ranked answer against what it should hold: recall@k, MRR@10, nDCG@10. Pure.

Knows nothing about stores, questions or how often one is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

CUTS = (1, 5, 10)
DEPTH = 10
"""How far down an answer is looked at."""


class Score(NamedTuple):
    """One answer's figures, each on 0..1."""

    recalls: tuple[float, ...]
    """The part of the gold among the first ``CUTS`` results: found gold over all gold."""
    mrr: float
    """1 / rank of the first gold among the first ``DEPTH``, 0 without one."""
    ndcg: float


def score(ranked: Sequence[str], gold: Mapping[str, float]) -> Score:
    """Judge the ids of an answer, best first. ``gold``: grades by id; a grade of 0 or less is no answer.

    An id that comes twice counts where it comes first. Raises: ValueError when ``gold`` names no answer.
    """
    gains = {id_: 2.0**grade - 1.0 for id_, grade in gold.items() if grade > 0}
    if not gains:
        raise ValueError("a question without a gold answer cannot be judged")
    distinct = list(dict.fromkeys(ranked))
    first = next((rank for rank, id_ in enumerate(distinct[:DEPTH], 1) if id_ in gains), None)
    ideal = _dcg(sorted(gains.values(), reverse=True))
    return Score(
        recalls=tuple(len(gains.keys() & set(distinct[:cut])) / len(gains) for cut in CUTS),
        mrr=1.0 / first if first else 0.0,
        ndcg=_dcg([gains.get(id_, 0.0) for id_ in distinct]) / ideal,
    )


def _dcg(gains: Sequence[float]) -> float:
    """Discounted cumulative gain: sum of gain / log2(rank + 1), with gain = 2^grade - 1 (Burges et al. 2005)."""
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:DEPTH], 1))


def mean(values: Sequence[float]) -> float:
    """The mean; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], part: float) -> float:
    """Nearest-rank percentile, ``part`` on 0..1; 0 for no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else 0.0
