"""The Onadit page's score, term by term: similarity, and what age, quality, tier and both lanes add (R7)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.config import load
from grounded_mcp.recall.blend import BlendOptions, blend
from grounded_mcp.values import Candidate, Kind, Vote
from tests.candidates import DAY, NOW, candidate

PAGE = BlendOptions(
    similarity=0.55,
    recency=0.10,
    quality=0.10,
    tier=0.10,
    outcome=0.10,
    both_ways=0.05,
    freshness=0.05,
    recency_per_day=0.01,
    freshness_days=14.0,
    quality_high=1.0,
    quality_medium=0.7,
    quality_low=0.4,
    tier_current=1.0,
    tier_digest=1.1,
    tier_archived=0.7,
    found_both_ways=1.3,
    found_one_way=1.0,
)
WORDS, MEANING, GRAPH = Vote("lexical", 0, 7.0, 0.8), Vote("vector", 0, 0.8, 0.8), Vote("graph", 0, 1.0, 0.0)  # type: ignore[arg-type]
BOTH = (WORDS, MEANING)


def blended(kind: Kind = "doc", *, options: BlendOptions = PAGE, days: float = 0.0, **fields: Any) -> Candidate:
    """A candidate indexed so many days ago, scored now."""
    one = candidate(kind, **{"score": 0.8, "updated_at": NOW - days * DAY, **fields})
    assert one.found is not None
    return blend(one, one.found, NOW, options)


def term(name: str, kind: Kind = "doc", **fields: Any) -> float:
    return next(term.value for term in blended(kind, **fields).terms if term.name == name)


def test_r7_the_shipped_numbers_of_the_blend_are_the_pages() -> None:
    assert load(env={"GROUNDED_HOME": "/nonexistent"}).pick(BlendOptions, "recall.blend") == PAGE


def test_r7_a_document_of_today_found_both_ways_adds_all_seven_terms() -> None:
    done = blended(votes=BOTH)
    assert [(each.name, each.weight, each.value) for each in done.terms] == [
        ("similarity", 0.55, 0.8),
        ("recency", 0.10, 1.0),
        ("quality", 0.10, 1.0),
        ("tier", 0.10, 1.0),
        ("outcome", 0.10, 1.0),
        ("found both ways", 0.05, 1.3),
        ("freshness", 0.05, 1.0),
    ]
    assert done.score == pytest.approx(0.44 + 4 * 0.10 + 0.065 + 0.05)


def test_r7_an_archived_low_quality_session_of_a_month_ago_comes_to_what_the_page_says() -> None:
    done = blended("session", votes=(MEANING,), days=30, state="archived", attrs={"quality": "low"})
    assert round(done.score, 4) == round(0.44 + 0.1 / 1.3 + 0.04 + 0.07 + 0.1 + 0.05 + 0.05 * math.exp(-30 / 14), 4)
    assert round(done.score, 4) == 0.7828


@pytest.mark.parametrize(("days", "value"), [(0, 1.0), (30, 0.77), (100, 0.5), (-3, 1.0)])
def test_r7_recency_halves_in_a_hundred_days_and_the_future_is_today(days: int, value: float) -> None:
    assert round(term("recency", days=days), 2) == value


@pytest.mark.parametrize(("days", "value"), [(0, 1.0), (7, 0.61), (14, 0.37), (30, 0.12), (-3, 1.0)])
def test_r7_freshness_is_spent_in_weeks_and_the_future_is_today(days: int, value: float) -> None:
    assert round(term("freshness", days=days), 2) == value


@pytest.mark.parametrize(("quality", "value"), [("high", 1.0), ("medium", 0.7), ("low", 0.4)])
def test_r7_a_conversation_counts_by_its_quality(quality: str, value: float) -> None:
    assert term("quality", "session", attrs={"quality": quality}) == value


@pytest.mark.parametrize("kind", ["doc", "digest", "fact", "learning", "episode", "script"])
def test_r7_only_conversations_are_rated(kind: Kind) -> None:
    assert term("quality", kind, attrs={"quality": "low"}) == 1.0
    assert term("quality", "session") == 1.0


@pytest.mark.parametrize(
    ("kind", "state", "value"),
    [
        ("session", "active", 1.0),
        ("session", "archived", 0.7),
        ("doc", "active", 1.0),
        ("doc", "archived", 1.0),
        ("digest", "active", 1.1),
        ("fact", "active", 1.0),
    ],
)
def test_r7_the_tier_lifts_digests_and_lowers_archived_conversations(kind: Kind, state: str, value: float) -> None:
    assert term("tier", kind, state=state) == value


@pytest.mark.parametrize(
    ("votes", "value"), [(BOTH, 1.3), ((WORDS,), 1.0), ((MEANING,), 1.0), ((WORDS, GRAPH), 1.0), ((*BOTH, GRAPH), 1.3)]
)
def test_r7_found_both_ways_means_by_words_and_by_meaning(votes: tuple[Vote, ...], value: float) -> None:
    assert term("found both ways", votes=votes) == value


def test_r7_an_absent_vote_is_no_way_of_finding() -> None:
    assert term("found both ways", votes=(WORDS, Vote("vector", None, None, -0.5))) == 1.0


def test_r7_age_counts_from_the_later_of_first_sync_and_last_change() -> None:
    assert term("recency", updated_at=NOW - 900 * DAY, created_at=NOW - 100 * DAY) == pytest.approx(0.5)
    assert term("recency", updated_at=NOW - 100 * DAY, created_at=NOW - 900 * DAY) == pytest.approx(0.5)


def test_r7_a_recent_passage_wins_a_close_call_and_loses_to_a_clearly_better_match() -> None:
    new = blended(score=0.5)
    assert blended(score=0.55, days=60).score < new.score < blended(score=0.8, days=60).score


CANDIDATES = st.builds(
    candidate,
    st.sampled_from(["fact", "session", "doc", "digest"]),
    score=st.floats(0, 1),
    votes=st.sampled_from([BOTH, (WORDS,), (MEANING, GRAPH)]),
    importance=st.none() | st.floats(0, 1),
    pinned=st.booleans(),
    created_at=st.floats(0, 2 * NOW),
    updated_at=st.floats(0, 2 * NOW),
    state=st.sampled_from(["active", "archived", "missing"]),
    attrs=st.sampled_from([{}, {"quality": "medium"}, {"quality": "?"}]),
)


@given(CANDIDATES)
def test_r7_a_blended_score_recomputes_exactly_from_its_terms_and_no_boost_applies(one: Candidate) -> None:
    assert one.found is not None
    done = blend(one, one.found, NOW, PAGE)
    assert done.score == math.fsum(term.weight * term.value for term in done.terms)
    assert (done.terms[0].value, done.fused, done.nudges) == (one.fused, one.fused, ())
    assert 0.0 <= done.score <= 1.075 + 1e-9


@given(CANDIDATES, st.floats(0, 1))
def test_r7_more_similarity_never_lowers_a_blended_score(one: Candidate, more: float) -> None:
    assert one.found is not None
    better = one._replace(fused=one.fused + more)
    assert blend(better, one.found, NOW, PAGE).score >= blend(one, one.found, NOW, PAGE).score


def test_r7_every_weight_0_but_similarity_leaves_similarity() -> None:
    off = dict.fromkeys(("recency", "quality", "tier", "outcome", "both_ways", "freshness"), 0.0)
    assert blended(options=replace(PAGE, similarity=1.0, **off), days=300, votes=BOTH).score == 0.8
