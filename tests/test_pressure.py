"""Each pressure multiplies by the number that the recall reference page states, and 1 switches it off (R8)."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.recall.pressure import BoostOptions, names_scope
from grounded_mcp.recall.scope import everything
from grounded_mcp.values import Candidate, Kind, ScopeFilter
from tests.candidates import BOOSTS, DAY, KINDS, NOW, candidate, declaring, press_again, pressed, query

OFF = BoostOptions(**{field.name: 1.0 for field in fields(BoostOptions)})


def score(kind: Kind, text: str = "how do tests run", within: ScopeFilter | None = None, **of: Any) -> float:
    return pressed(kind, text, within, **of).score


@pytest.mark.parametrize(("importance", "factor"), [(1.0, 1.5), (0.6, 1.3), (0.5, 1.25), (0.0, 1.0), (None, 1.0)])
def test_r8_a_fact_is_lifted_by_its_importance_up_to_one_and_a_half(importance: float | None, factor: float) -> None:
    assert score("fact", importance=importance) == pytest.approx(factor)


def test_r8_pinning_lifts_nothing() -> None:
    assert score("fact", importance=0.6, pinned=True) == pytest.approx(1.3)


@pytest.mark.parametrize(
    ("age_days", "factor"), [(0, 1.0), (30, 0.5), (60, 0.25), (15, 0.7071067811865476), (-400, 1.0)]
)
def test_r8_a_session_loses_half_its_weight_in_30_days_and_the_future_is_fresh(age_days: int, factor: float) -> None:
    assert score("session", updated_at=NOW - age_days * DAY) == pytest.approx(factor)


@pytest.mark.parametrize(("state", "factor"), [("active", 1.25), ("archived", 1.0), ("missing", 1.0)])
def test_r8_only_an_active_document_is_lifted(state: str, factor: float) -> None:
    assert score("doc", state=state) == factor


@pytest.mark.parametrize("kind", ["learning", "episode", "script"])
def test_other_kinds_are_not_pressed(kind: Kind) -> None:
    assert pressed(kind, importance=1.0, updated_at=0.0).nudges == ()


ALPHA, BETA = "project:alpha", "project:beta"
FACT_SCOPES = "factScopes"


@pytest.mark.parametrize(
    ("tier", "scope", "text", "filter_", "factor"),
    [
        ("match: named in the query", ALPHA, "where is alpha deployed", everything(), 1.5),
        ("match: the declared project", ALPHA, "where is it deployed", declaring(ALPHA), 1.5),
        ("match: a machine named in the query", "machine:laptop", "paths on my laptop?", everything(), 1.5),
        ("match: the declared project under its plain name", ALPHA, "x", declaring("project:host/me/alpha"), 1.5),
        ("match: named, although another was declared", BETA, "and beta?", declaring(ALPHA, source=FACT_SCOPES), 1.5),
        ("mismatch: another project was declared", BETA, "ports", declaring(ALPHA, source=FACT_SCOPES), 0.8),
        ("specific: nothing declared", ALPHA, "ports", everything(), 1.0),
        (
            "specific: a machine under a declared project",
            "machine:laptop",
            "ports",
            declaring(ALPHA, source=FACT_SCOPES),
            1.0,
        ),
        ("neutral: global", "global", "global ports", declaring(ALPHA), 1.0),
    ],
)
def test_r8_a_fact_is_in_one_of_four_scope_tiers(
    tier: str, scope: str, text: str, filter_: ScopeFilter, factor: float
) -> None:
    assert score("fact", text, filter_, scope=scope) == factor, tier


def test_r8_the_specific_and_neutral_tiers_have_their_own_knobs() -> None:
    knobs = replace(BOOSTS, scope_specific=1.3, scope_neutral=0.9)
    assert press_again(candidate(score=1.0, scope="agent:reviewer"), query(), knobs).score == 1.3
    assert press_again(candidate(score=1.0, scope="global"), query(), knobs).score == 0.9


def test_importance_pinning_and_scope_multiply() -> None:
    fact = candidate(score=0.4, importance=0.6, pinned=True, scope=ALPHA)
    done = press_again(fact, query("alpha"), replace(BOOSTS, pinned=2.0))
    assert [(nudge.name, nudge.factor) for nudge in done.nudges] == [
        ("importance", pytest.approx(1.3)),
        ("pinned", 2.0),
        ("scope match", 1.5),
    ]
    assert done.score == pytest.approx(0.4 * 1.3 * 2.0 * 1.5)


@pytest.mark.parametrize("kind", KINDS)
def test_r8_one_switches_a_pressure_off(kind: Kind) -> None:
    aged = candidate(kind, score=0.7, updated_at=0.0, importance=1.0, pinned=True, scope=ALPHA)
    done = press_again(aged, query("alpha", scope=declaring(BETA)), OFF)
    assert (done.score, done.nudges) == (0.7, ())


@pytest.mark.parametrize(
    ("text", "scope", "named"),
    [
        ("how is alpha deployed?", "project:alpha", True),
        ("ALPHA.", "project:alpha", True),
        ("alpha's port", "project:alpha", True),
        ("(alpha): port", "project:alpha", True),
        ("alphabet soup", "project:alpha", False),
        ("the alpha-web port", "project:alpha-web", True),
        ("the alpha-web port", "project:alpha", False),
        ("the alpha-web port", "project:web", False),
        ("the alpha web port", "project:alpha-web", True),
        ("the alpha_web port", "project:alpha-web", True),
        ("ask the code-reviewer agent", "agent:code_reviewer", True),
        ("see app.py", "project:app", False),
        ("see src/api/views.py", "project:api", False),
        ("mail me@alpha", "project:alpha", False),
        ("alpha.example.com", "project:alpha", False),
        ("clone acme/alpha", "project:github.com/acme/alpha", True),
        ("clone alpha", "project:github.com/acme/alpha", True),
        ("clone https://github.com/acme/alpha", "project:github.com/acme/alpha", False),
        ("c++ flags", "project:c++", True),
        ("größe", "project:GRÖSSE", True),
        ("global rules", "global", False),
        ("anything", "project:", False),
        ("", "project:alpha", False),
        (".*", "project:.*", True),
        ("xx", "project:.*", False),
    ],
)
def test_r8_a_scope_is_named_as_whole_words(text: str, scope: str, named: bool) -> None:
    assert names_scope(text, scope) is named


CANDIDATES = st.builds(
    candidate,
    st.sampled_from(["fact", "session", "doc", "learning"]),
    score=st.floats(0, 1),
    importance=st.none() | st.floats(0, 1),
    pinned=st.booleans(),
    updated_at=st.floats(0, 2 * NOW),
    scope=st.sampled_from(["global", ALPHA, BETA, "machine:laptop", "agent:alpha"]),
    state=st.sampled_from(["active", "archived", "missing"]),
)


@given(CANDIDATES, st.sampled_from(["alpha", "ports", ""]), st.sampled_from([everything(), declaring(ALPHA)]))
def test_r8_a_score_is_the_fused_score_times_its_nudges(one: Candidate, text: str, filter_: ScopeFilter) -> None:
    done = press_again(one, query(text, scope=filter_), BOOSTS)
    assert done.score == done.fused * math.prod(nudge.factor for nudge in done.nudges)
    assert done.fused == one.fused
    assert all(nudge.factor != 1.0 for nudge in done.nudges)
