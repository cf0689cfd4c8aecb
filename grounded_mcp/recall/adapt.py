"""How much the two lanes count for one question, by how much each of them tells its candidates apart. Pure.

No weight is right for every question. A lane whose candidates all score alike has little to say, however it is scaled:
normalization takes that difference away, and this puts it back. The contrast of a lane is the standard deviation of
its scores over their mean. Rare words and identifiers give keyword search a sharp contrast; a question of common words
gives it next to none. The rule was chosen on five data sets at once, see bench/LOG.md. Knows nothing about stores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.values import LaneName, Ranking


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """[recall.fusion.adapt]. The vector lane's weight is multiplied by ``contrast`` x its contrast / the lexical
    lane's, held between ``least`` and ``most``. ``contrast`` 0 leaves the weights as they are."""

    contrast: float
    least: float
    most: float


def adapted(fusion: FusionOptions, rankings: Sequence[Ranking], options: AdaptOptions) -> FusionOptions:
    """The fusion for one question. It is as configured where a lane found fewer than two passages, or has no weight."""
    if not (options.contrast and fusion.weighs("lexical") and fusion.weighs("vector")):
        return fusion
    words, meaning = _contrast(rankings, "lexical"), _contrast(rankings, "vector")
    if words is None or meaning is None:
        return fusion
    factor = options.contrast * meaning / words if words else options.most
    vector = fusion.weights.get("vector", 1.0) * min(max(factor, options.least), options.most)
    return replace(fusion, weights={**fusion.weights, "vector": vector})


def _contrast(rankings: Sequence[Ranking], lane: LaneName) -> float | None:
    """Standard deviation over mean of a lane's scores, which are positive; None for fewer than two."""
    scores = [hit.score for ranking in rankings if ranking.lane == lane for hit in ranking.hits]
    mean = math.fsum(scores) / len(scores) if len(scores) > 1 else 0.0
    if mean <= 0.0:
        return None
    return math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores)) / mean
