"""How far a mean may be off: bootstrap intervals over clusters of questions. The same seed gives the same interval.

Of two configurations the interval of interest is that of their difference, question by question (paired): questions
differ far more than configurations do. Knows nothing about what the values measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from grounded_mcp.evaluation.metrics import mean

RESAMPLES = 2_000
LEVEL = 0.95


class Interval(NamedTuple):
    """A mean with its percentile bootstrap interval at ``LEVEL``."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float], clusters: Sequence[str], *, seed: int = 0) -> Interval:
    """The interval of the mean of ``values``. ``clusters`` names what each belongs to, as long as ``values``.

    Whole clusters are drawn: questions with the same answer succeed and fail together, and drawing them one by one
    would claim more evidence than there is.
    """
    import numpy as np

    if not values:
        return Interval(0.0, 0.0, 0.0)
    _, which = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(which, weights=np.asarray(values, dtype=np.float64))
    counts = np.bincount(which)
    drawn = np.random.default_rng(seed).integers(0, len(counts), size=(RESAMPLES, len(counts)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(mean(values), float(low), float(high))


def difference(ours: Sequence[float], theirs: Sequence[float], clusters: Sequence[str], *, seed: int = 0) -> Interval:
    """The interval of the mean of ``ours - theirs``, question by question."""
    return interval([mine - other for mine, other in zip(ours, theirs, strict=True)], clusters, seed=seed)
