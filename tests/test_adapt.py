"""How much a lane counts for one question: by how much it tells its candidates apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from grounded_mcp.recall.adapt import AdaptOptions, adapted
from grounded_mcp.recall.fusion import FusionMode, FusionOptions
from grounded_mcp.values import Hit, LaneName, PassageId, Ranking

OPTIONS = AdaptOptions(contrast=3.0, least=0.6, most=2.0)
FUSION = FusionOptions("normalized", 60, "min_max", {"lexical": 1.0, "vector": 1.0, "graph": 0.3, "temporal": 0.5})


def lane(name: LaneName, *scores: float) -> Ranking:
    return Ranking(name, "doc", tuple(Hit(PassageId(at), score) for at, score in enumerate(scores)))


def weights(*rankings: Ranking, fusion: FusionOptions = FUSION, options: AdaptOptions = OPTIONS) -> dict[str, float]:
    return dict(adapted(fusion, rankings, options).weights)


def test_r7_words_that_single_out_their_hits_count_more_than_a_vector_that_does_not() -> None:
    sharp = weights(lane("lexical", 30.0, 3.0, 3.0, 3.0), lane("vector", 0.62, 0.61, 0.6, 0.6))
    assert sharp == {**FUSION.weights, "vector": 0.6}


def test_r7_words_that_find_everything_alike_leave_the_order_to_the_vector() -> None:
    flat = weights(lane("lexical", 9.1, 9.0, 9.0, 8.9), lane("vector", 0.8, 0.5, 0.4, 0.3))
    assert flat == {**FUSION.weights, "vector": 2.0}


def test_r7_between_its_bounds_the_weight_is_three_times_the_ratio_of_the_contrasts() -> None:
    # Standard deviation over mean: 2/8 for the words, 0.05/0.55 for the vector.
    between = weights(lane("lexical", 10.0, 6.0), lane("vector", 0.6, 0.5))
    assert between["vector"] == pytest.approx(3 * (0.05 / 0.55) / (2 / 8))


@pytest.mark.parametrize(
    "rankings",
    [
        (),
        (lane("lexical", 9.0, 1.0),),
        (lane("lexical", 9.0, 1.0), lane("vector", 0.5)),
        (lane("lexical"), lane("vector", 0.5, 0.4)),
    ],
)
def test_r7_with_nothing_to_compare_the_weights_are_as_configured(rankings: tuple[Ranking, ...]) -> None:
    assert adapted(FUSION, rankings, OPTIONS) is FUSION


@pytest.mark.parametrize("mode", ["rrf", "blend"])
def test_r7_the_formulas_of_the_pages_are_not_adapted(mode: FusionMode) -> None:
    fusion = FusionOptions(mode, 60, "min_max", FUSION.weights)
    assert adapted(fusion, (lane("lexical", 9.0, 1.0), lane("vector", 0.5, 0.4)), OPTIONS) is fusion


def test_r7_contrast_0_and_a_lane_of_weight_0_switch_it_off() -> None:
    rankings = (lane("lexical", 9.0, 1.0), lane("vector", 0.5, 0.4))
    assert adapted(FUSION, rankings, AdaptOptions(0.0, 0.6, 2.0)) is FUSION
    silent = FusionOptions("normalized", 60, "min_max", {**FUSION.weights, "vector": 0.0})
    assert adapted(silent, rankings, OPTIONS) is silent


scores = st.lists(st.floats(0.01, 100), min_size=2, max_size=6)


@hypothesis_settings(max_examples=60)
@given(scores, scores, st.floats(0.1, 10))
def test_r7_the_weight_keeps_its_bounds_and_no_lanes_unit_matters(
    words: list[float], meaning: list[float], unit: float
) -> None:
    one = weights(lane("lexical", *words), lane("vector", *meaning))["vector"]
    other = weights(lane("lexical", *(unit * score for score in words)), lane("vector", *meaning))["vector"]
    assert 0.6 <= one <= 2.0
    assert one == pytest.approx(other, rel=1e-6, abs=1e-3)
