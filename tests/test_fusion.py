"""Rankings become one score per passage: the page's reciprocal ranks, and scores on one scale (R7)."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grounded_mcp.recall.fusion import FusionOptions, fuse
from grounded_mcp.values import Candidate, Hit, Kind, LaneName, PassageId, Ranking


def options(
    mode: str = "normalized", normalization: str = "zscore", lexical: float = 1.0, vector: float = 1.0, k: int = 60
) -> FusionOptions:
    return FusionOptions(mode, k, normalization, lexical, vector)  # type: ignore[arg-type]


RRF = options("rrf")
ZSCORE = options()
MIN_MAX = options(normalization="min_max")


def ranking(lane: LaneName, scores: dict[int, float], kind: Kind = "doc") -> Ranking:
    best_first = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return Ranking(lane, kind, tuple(Hit(PassageId(id_), score) for id_, score in best_first))


def scores(*rankings: Ranking, by: FusionOptions) -> dict[int, float]:
    return {candidate.id: candidate.fused for candidate in fuse(rankings, by)}


def test_rrf_gives_one_sixtieth_to_the_first_of_one_lane_and_two_to_the_first_of_both() -> None:
    fused = scores(ranking("vector", {1: 0.9, 2: 0.8}), ranking("lexical", {1: 12.0, 3: 3.0}), by=RRF)
    assert fused == {1: 2 / 60, 2: 1 / 61, 3: 1 / 61}


def test_rrf_adds_the_reciprocal_of_k_plus_the_0_based_rank() -> None:
    vector = ranking("vector", {1: 0.9, 2: 0.8, 3: 0.7})
    lexical = ranking("lexical", {3: 9.0, 2: 8.0, 1: 7.0})
    assert scores(vector, lexical, by=RRF)[1] == pytest.approx(1 / 60 + 1 / 62, abs=1e-15)
    assert scores(vector, by=options("rrf", k=10)) == {1: 1 / 10, 2: 1 / 11, 3: 1 / 12}


def test_rrf_counts_ranks_within_each_source() -> None:
    docs, facts = ranking("lexical", {1: 9.0, 2: 8.0}, "doc"), ranking("lexical", {3: 1.0}, "fact")
    assert scores(docs, facts, by=RRF) == {1: 1 / 60, 2: 1 / 61, 3: 1 / 60}


def test_a_candidate_says_which_lane_found_it_where_and_what_that_was_worth() -> None:
    (first, second) = fuse((ranking("vector", {1: 0.9, 2: 0.8}), ranking("lexical", {1: 12.0})), RRF)
    assert [(v.lane, v.rank, v.native, v.value) for v in first.votes] == [
        ("vector", 0, 0.9, 1 / 60),
        ("lexical", 0, 12.0, 1 / 60),
    ]
    assert [(v.lane, v.rank, v.native) for v in second.votes] == [("vector", 1, 0.8)]


def test_z_scores_are_averaged_and_mapped_to_0_1() -> None:
    fused = scores(ranking("vector", {1: 0.8, 2: 0.6}), ranking("lexical", {1: 10.0, 2: 6.0}), by=ZSCORE)
    assert fused == {1: pytest.approx(1 / (1 + math.exp(-1))), 2: pytest.approx(1 / (1 + math.exp(1)))}


def test_min_max_scores_are_averaged() -> None:
    fused = scores(ranking("vector", {1: 0.8, 2: 0.7, 3: 0.6}), ranking("lexical", {3: 10.0, 1: 6.0}), by=MIN_MAX)
    assert fused == {1: pytest.approx(0.5), 2: pytest.approx(0.25), 3: pytest.approx(0.5)}


@pytest.mark.parametrize("by", [ZSCORE, MIN_MAX])
def test_what_a_lane_did_not_find_gets_its_worst_candidate_value(by: FusionOptions) -> None:
    lexical = ranking("lexical", {1: 10.0, 2: 6.0})
    absent = scores(ranking("vector", {1: 0.8, 2: 0.6, 3: 0.5}), lexical, by=by)[3]
    worst = scores(ranking("vector", {1: 0.8, 2: 0.5, 3: 0.6}), lexical, by=by)[2]
    assert absent == pytest.approx(worst)
    vote = next(
        v
        for c in fuse((ranking("vector", {1: 0.8, 3: 0.5}), lexical), by)
        if c.id == 3
        for v in c.votes
        if v.lane == "lexical"
    )
    assert (vote.rank, vote.native) == (None, None)


@pytest.mark.parametrize("by", [ZSCORE, MIN_MAX])
def test_a_single_strong_candidate_is_not_zero_and_stands_above_what_was_not_found(by: FusionOptions) -> None:
    assert scores(ranking("lexical", {1: 10.0}), by=by)[1] > 0.5
    fused = scores(ranking("lexical", {1: 10.0}), ranking("vector", {2: 0.7, 3: 0.7}), by=by)
    assert min(fused.values()) >= 0.5


@pytest.mark.parametrize(("by", "value"), [(ZSCORE, 1 / (1 + math.exp(-1))), (MIN_MAX, 1.0)])
def test_equal_scores_have_a_defined_value(by: FusionOptions, value: float) -> None:
    assert scores(ranking("vector", {1: 0.7, 2: 0.7, 3: 0.7}), by=by) == dict.fromkeys((1, 2, 3), pytest.approx(value))


def test_a_weight_decides_between_two_lanes_and_zero_silences_one_without_losing_its_hits() -> None:
    vector, lexical = ranking("vector", {1: 0.9, 2: 0.5}), ranking("lexical", {2: 9.0, 1: 5.0, 3: 1.0})
    heavy = scores(vector, lexical, by=options(lexical=3.0))
    light = scores(vector, lexical, by=options(lexical=0.5))
    assert heavy[2] > heavy[1]
    assert light[1] > light[2]
    silent = {c.id: c for c in fuse((vector, lexical), options(lexical=0.0))}
    assert silent[PassageId(3)].votes[1].value == 0.0
    assert [v.lane for v in silent[PassageId(3)].votes if v.rank is not None] == ["lexical"]


def test_all_weights_zero_leaves_every_hit_at_the_same_score() -> None:
    fused = scores(ranking("vector", {1: 0.9}), ranking("lexical", {2: 9.0}), by=options(lexical=0.0, vector=0.0))
    assert fused == {1: 0.5, 2: 0.5}


def test_nothing_found_is_nothing_fused() -> None:
    assert fuse((), ZSCORE) == ()
    assert fuse((Ranking("lexical", "doc"), Ranking("vector", "doc")), RRF) == ()


def test_scores_that_differ_beyond_the_ninth_digit_are_equal_and_ordered_by_id() -> None:
    fused = fuse((ranking("vector", {7: 0.5, 3: 0.5 - 1e-11, 5: 0.1}),), MIN_MAX)
    assert [candidate.id for candidate in fused] == [3, 7, 5]


def test_the_description_is_derived_from_what_is_in_force() -> None:
    assert RRF.describe() == {"algorithm": "rrf", "k": 60}
    assert options(lexical=0.4).describe() == {
        "algorithm": "normalized",
        "normalization": "zscore",
        "lexical": 0.4,
        "vector": 1.0,
    }


# Scores a sixty-fourth apart: nearer ones are equal by definition (1e-12), which is no monotone matter.
NATIVE = st.integers(-640, 640).map(lambda n: n / 64)
ARM = st.dictionaries(st.integers(1, 12), NATIVE, max_size=8)
WEIGHT = st.sampled_from([0.0, 0.4, 1.0, 3.0])
OPTIONS = st.builds(
    options,
    st.sampled_from(["rrf", "normalized"]),
    st.sampled_from(["zscore", "min_max"]),
    WEIGHT,
    WEIGHT,
    st.integers(1, 100),
)


@given(ARM, ARM, ARM, OPTIONS)
def test_fusion_keeps_every_hit_once_best_first(
    vector: dict[int, float], lexical: dict[int, float], facts: dict[int, float], by: FusionOptions
) -> None:
    facts = {id_ + 100: score for id_, score in facts.items()}
    fused = fuse((ranking("vector", vector), ranking("lexical", lexical), ranking("lexical", facts, "fact")), by)
    assert sorted(c.id for c in fused) == sorted({*vector, *lexical, *facts})
    assert [c.kind for c in sorted(fused, key=lambda c: c.id)] == [
        "fact" if id_ > 100 else "doc" for id_ in sorted({*vector, *lexical, *facts})
    ]
    assert [c.id for c in fused] == [c.id for c in sorted(fused, key=lambda c: (-round(c.fused, 9), c.id))]
    found = {(c.id, v.lane): v.native for c in fused for v in c.votes if v.rank is not None}
    assert found == {(id_, "vector"): s for id_, s in vector.items()} | {
        (id_, "lexical"): s for id_, s in (lexical | facts).items()
    }


@given(ARM, ARM, OPTIONS)
def test_a_fused_score_recomputes_exactly_from_its_votes(
    vector: dict[int, float], lexical: dict[int, float], by: FusionOptions
) -> None:
    for candidate in fuse((ranking("vector", vector), ranking("lexical", lexical)), by):
        assert candidate.fused == recomputed(candidate, by)
        assert candidate.score == candidate.fused


def recomputed(candidate: Candidate, by: FusionOptions) -> float:
    total = math.fsum(vote.value for vote in candidate.votes)
    return 1 / (1 + math.exp(-total)) if by.mode == "normalized" and by.normalization == "zscore" else total


@given(ARM, ARM, st.sampled_from(["zscore", "min_max"]), WEIGHT, WEIGHT)
def test_normalized_scores_lie_on_0_1(
    vector: dict[int, float], lexical: dict[int, float], scale: str, one: float, other: float
) -> None:
    fused = scores(ranking("vector", vector), ranking("lexical", lexical), by=options("normalized", scale, one, other))
    assert all(0.0 <= round(score, 9) <= 1.0 for score in fused.values())


@given(ARM, ARM, OPTIONS, st.integers(1, 640), st.data())
def test_a_higher_score_in_one_lane_never_lowers_an_item(
    vector: dict[int, float], lexical: dict[int, float], by: FusionOptions, more: int, data: st.DataObject
) -> None:
    assume(lexical)
    raised = data.draw(st.sampled_from(sorted(lexical)))
    before = scores(ranking("vector", vector), ranking("lexical", lexical), by=by)[raised]
    higher = lexical | {raised: lexical[raised] + more / 64}
    assert scores(ranking("vector", vector), ranking("lexical", higher), by=by)[raised] >= before - 1e-12
