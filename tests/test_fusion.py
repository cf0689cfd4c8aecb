"""Rankings become one score per passage: by position, by the lanes' own scores, by both, by similarity (R7)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.recall.fusion import FusionOptions, fuse
from grounded_mcp.values import Candidate, Hit, Kind, PassageId, Ranking

LANES: tuple[Any, ...] = ("lexical", "vector", "graph", "temporal")


def options(mode: Any = "normalized", normalization: Any = "zscore", k: int = 60, **weights: float) -> FusionOptions:
    return FusionOptions(mode, k, normalization, {"lexical": 1.0, "vector": 1.0, **weights})


RRF = options("rrf")
ZSCORE = options()
MIN_MAX = options(normalization="min_max")
HYBRID = options("hybrid")
BLEND = options("blend")
EVERY = (RRF, ZSCORE, MIN_MAX, HYBRID, options("hybrid", "min_max"), BLEND)


def ranking(lane: Any, scores: dict[int, float], kind: Kind = "doc") -> Ranking:
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


def test_r17_scores_that_differ_beyond_the_ninth_digit_are_equal_and_in_the_order_of_their_lane() -> None:
    fused = fuse((ranking("vector", {7: 0.5 - 1e-11, 3: 0.5, 5: 0.1}), ranking("lexical", {7: 2.0, 3: 2.0})), MIN_MAX)
    assert [candidate.id for candidate in fused] == [3, 7, 5]
    level = (ranking("lexical", {9: 2.0}, "fact"), ranking("lexical", {4: 2.0, 8: 2.0}, "doc"))
    assert [candidate.id for candidate in fuse(level, MIN_MAX)] == [4, 8, 9]


def test_the_description_is_derived_from_what_is_in_force() -> None:
    scaled = {"normalization": "zscore", "lexical": 0.4, "vector": 1.0, "graph": 0.2}
    assert RRF.describe() == {"algorithm": "rrf", "k": 60}
    assert options(lexical=0.4, graph=0.2).describe() == {"algorithm": "normalized", **scaled}
    assert options("hybrid", lexical=0.4, graph=0.2).describe() == {"algorithm": "hybrid", "k": 60, **scaled}
    assert BLEND.describe() == {"algorithm": "blend"}


# --- hybrid and blend -------------------------------------------------------------------------------------


def test_r7_hybrid_averages_normalized_scores_and_reciprocal_ranks_over_the_most_they_can_be() -> None:
    rankings = (ranking("vector", {1: 0.8, 2: 0.7, 3: 0.6}), ranking("lexical", {3: 10.0, 1: 6.0}))
    assert scores(*rankings, by=options("hybrid", "min_max")) == {
        1: pytest.approx((0.5 + (60 / 60 + 60 / 61) / 2) / 2),
        2: pytest.approx((0.25 + (60 / 61) / 2) / 2),
        3: pytest.approx((0.5 + (60 / 62 + 60 / 60) / 2) / 2),
    }


def test_r7_hybrid_gives_1_to_what_is_first_everywhere_and_nothing_more_than_1() -> None:
    assert scores(ranking("vector", {1: 0.9}), ranking("lexical", {1: 7.0}), by=options("hybrid", "min_max")) == {
        1: 1.0
    }


def test_r7_blend_takes_the_cosine_or_bm25_scaled_to_the_best_cosine_and_of_both_the_larger() -> None:
    vector, lexical = ranking("vector", {1: 0.8, 2: 0.6, 4: 0.7}), ranking("lexical", {2: 10.0, 3: 5.0, 4: 1.0})
    assert scores(vector, lexical, by=BLEND) == {1: 0.8, 2: 0.8, 3: 0.4, 4: 0.7}


def test_r7_blend_scales_words_over_all_sources_alike() -> None:
    docs, facts = ranking("lexical", {1: 8.0}), ranking("lexical", {2: 4.0}, "fact")
    assert scores(docs, facts, ranking("vector", {3: 0.5}, "session"), by=BLEND) == {1: 0.5, 2: 0.25, 3: 0.5}


def test_r7_blend_without_a_hit_by_meaning_is_relative_to_the_best_bm25() -> None:
    assert scores(ranking("lexical", {1: 8.0, 2: 2.0}), by=BLEND) == {1: 1.0, 2: 0.25}
    assert scores(ranking("lexical", {1: 0.0, 2: 0.0}), by=BLEND) == {1: 1.0, 2: 1.0}


def test_r7_blend_knows_similarity_by_words_and_by_meaning_only() -> None:
    fused = scores(ranking("vector", {1: 0.8}), ranking("graph", {1: 3.0, 2: 9.0}), by=BLEND)
    assert fused == {1: 0.8, 2: 0.0}


# --- whatever the rankings --------------------------------------------------------------------------------

# Scores a sixty-fourth apart: nearer ones are equal by definition (1e-12), which is no monotone matter.
NATIVE = st.integers(-640, 640).map(lambda n: n / 64)
ARM = st.dictionaries(st.integers(1, 12), NATIVE, max_size=8)
FOUND = st.dictionaries(st.integers(1, 12), NATIVE, min_size=1, max_size=8)
ARMS = st.dictionaries(st.sampled_from(LANES), ARM, max_size=4)
WEIGHT = st.sampled_from([0.0, 0.4, 1.0, 3.0])


def options_of(*modes: str) -> st.SearchStrategy[FusionOptions]:
    return st.builds(
        options,
        st.sampled_from(modes),
        st.sampled_from(["zscore", "min_max"]),
        st.integers(1, 100),
        lexical=WEIGHT,
        vector=WEIGHT,
        graph=WEIGHT,
    )


OPTIONS = options_of("rrf", "normalized", "hybrid", "blend")
WEIGHTED = options_of("normalized", "hybrid")


def rankings(arms: dict[Any, dict[int, float]]) -> list[Ranking]:
    return [ranking(lane, found) for lane, found in arms.items()]


@given(ARMS, ARM, OPTIONS)
def test_fusion_keeps_every_hit_once_best_first(
    arms: dict[Any, dict[int, float]], facts: dict[int, float], by: FusionOptions
) -> None:
    facts = {id_ + 100: score for id_, score in facts.items()}
    fused = fuse((*rankings(arms), ranking("lexical", facts, "fact")), by)
    ids = sorted({*facts, *(id_ for found in arms.values() for id_ in found)})
    assert sorted(c.id for c in fused) == ids
    assert [c.kind for c in sorted(fused, key=lambda c: c.id)] == ["fact" if id_ > 100 else "doc" for id_ in ids]
    falling = [-round(c.fused, 9) for c in fused]
    assert falling == sorted(falling)
    found = {(c.id, v.lane): v.native for c in fused for v in c.votes if v.rank is not None}
    given_ = {(id_, lane): score for lane, hits in arms.items() for id_, score in hits.items()}
    assert found == given_ | {(id_, "lexical"): score for id_, score in facts.items()}


@given(ARMS, OPTIONS)
def test_a_fused_score_recomputes_exactly_from_its_votes(arms: dict[Any, dict[int, float]], by: FusionOptions) -> None:
    for candidate in fuse(rankings(arms), by):
        assert candidate.fused == recomputed(candidate, by)
        assert candidate.score == candidate.fused


def recomputed(candidate: Candidate, by: FusionOptions) -> float:
    values = [vote.value for vote in candidate.votes]
    total = max(values) if by.mode == "blend" else math.fsum(values)
    if by.mode in ("normalized", "hybrid") and by.normalization == "zscore":
        total = 1 / (1 + math.exp(-total))
    if by.mode != "hybrid":
        return total
    weights = {vote.lane: by.weights.get(vote.lane, 1.0) for vote in candidate.votes}
    whole = math.fsum(weights.values()) or 1.0
    ranks = [weights[v.lane] / whole * by.k / (by.k + v.rank) for v in candidate.votes if v.rank is not None]
    return (total + math.fsum(ranks)) / 2


@given(ARMS, options_of("normalized"))
def test_normalized_scores_lie_on_0_1(arms: dict[Any, dict[int, float]], by: FusionOptions) -> None:
    assert all(0.0 <= round(candidate.fused, 9) <= 1.0 for candidate in fuse(rankings(arms), by))


@given(ARMS, options_of("hybrid", "blend"))
def test_r7_hybrid_scores_and_similarities_lie_on_0_1(arms: dict[Any, dict[int, float]], by: FusionOptions) -> None:
    assert all(0.0 <= round(candidate.fused, 9) <= 1.0 for candidate in fuse(rankings(arms), by))


@given(ARMS, OPTIONS)
def test_r7_what_a_lane_did_not_find_gets_no_more_of_it_than_its_worst_candidate(
    arms: dict[Any, dict[int, float]], by: FusionOptions
) -> None:
    votes = [vote for candidate in fuse(rankings(arms), by) for vote in candidate.votes]
    for lane in arms:
        worst = min((vote.value for vote in votes if vote.lane == lane and vote.rank is not None), default=0.0)
        assert all(vote.value <= worst for vote in votes if vote.lane == lane and vote.rank is None)


@pytest.mark.parametrize("by", EVERY, ids=lambda by: f"{by.mode} {by.normalization}")
@given(NATIVE.filter(lambda score: score > 0))
def test_r7_a_single_strong_candidate_is_not_zero(by: FusionOptions, native: float) -> None:
    least = 1 / 60 if by.mode == "rrf" else 0.7
    assert scores(ranking("lexical", {1: native}), by=by)[1] >= least


@given(ARMS, st.sampled_from(LANES), FOUND, OPTIONS, st.integers(1, 640), st.data())
def test_r7_a_higher_score_in_one_lane_never_lowers_an_item(
    arms: dict[Any, dict[int, float]],
    lane: Any,
    found: dict[int, float],
    by: FusionOptions,
    more: int,
    data: st.DataObject,
) -> None:
    raised = data.draw(st.sampled_from(sorted(found)))
    before = scores(*rankings(arms | {lane: found}), by=by)[raised]
    higher = found | {raised: found[raised] + more / 64}
    assert scores(*rankings(arms | {lane: higher}), by=by)[raised] >= before - 1e-12


@given(ARMS, FOUND, WEIGHTED)
def test_r7_a_weight_of_0_switches_a_lane_off_without_losing_its_hits(
    arms: dict[Any, dict[int, float]], silent: dict[int, float], by: FusionOptions
) -> None:
    others = {lane: found for lane, found in arms.items() if lane != "temporal"}
    muted = FusionOptions(by.mode, by.k, by.normalization, {**by.weights, "temporal": 0.0})
    without = scores(*rankings(others), by=muted)
    with_it = scores(*rankings(others | {"temporal": silent}), by=muted)
    assert {id_: with_it[id_] for id_ in without} == without
    assert with_it.keys() == {*without, *silent}


@given(ARMS, ARM, OPTIONS, st.randoms(use_true_random=False))
def test_r7_the_order_of_the_rankings_changes_nothing(
    arms: dict[Any, dict[int, float]], facts: dict[int, float], by: FusionOptions, random: Any
) -> None:
    facts = {id_ + 100: score for id_, score in facts.items()}
    straight = [*rankings(arms), ranking("vector", facts, "fact")]
    shuffled = random.sample(straight, len(straight))
    one, other = fuse(straight, by), fuse(shuffled, by)
    assert [(c.id, c.fused, set(c.votes)) for c in one] == [(c.id, c.fused, set(c.votes)) for c in other]


@given(ARMS, FOUND, WEIGHTED, st.floats(0.01, 100), st.floats(-100, 100))
def test_r7_the_scale_of_a_lanes_own_scores_does_not_matter(
    arms: dict[Any, dict[int, float]], lexical: dict[int, float], by: FusionOptions, factor: float, offset: float
) -> None:
    scaled = {id_: factor * score + offset for id_, score in lexical.items()}
    before = scores(*rankings(arms | {"lexical": lexical}), by=by)
    assert scores(*rankings(arms | {"lexical": scaled}), by=by) == pytest.approx(before, abs=1e-6)


@given(ARMS, OPTIONS, st.sampled_from(LANES))
def test_r7_a_lane_that_finds_nothing_changes_nothing(
    arms: dict[Any, dict[int, float]], by: FusionOptions, lane: Any
) -> None:
    assert fuse((Ranking(lane, "session"), *rankings(arms)), by) == fuse(rankings(arms), by)


@given(FOUND, st.integers(2, 5), OPTIONS)
def test_r7_equal_scores_have_one_defined_value_within_a_lane(
    found: dict[int, float], count: int, by: FusionOptions
) -> None:
    level = dict.fromkeys(range(1, count + 1), next(iter(found.values())))
    values = {vote.value for c in fuse((ranking("lexical", level),), by) for vote in c.votes}
    assert len(values) == (count if by.mode == "rrf" else 1)
    assert all(map(math.isfinite, values))
