"""Confidence: evidence adds up by its kind, states have an order, and the rationale recomputes to the final score."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.knowledge.confidence import ConfidenceOptions, ScriptState, judge, state_of, weigh
from grounded_mcp.knowledge.freshness import MAX_BYTES, Freshness
from grounded_mcp.values import Clean, Evidence, EvidenceKind

OPTIONS = ConfidenceOptions()
DAY = 86_400.0


def proof(*, supports: bool = True, kind: EvidenceKind = "verified outcome", at: float = 1.0) -> Evidence:
    return Evidence("ses_1", 1, supports, kind, at, Clean(""))


def diagnosis(*, supports: bool = True, at: float = 1.0) -> Evidence:
    return proof(supports=supports, kind="diagnostic episode", at=at)


@pytest.mark.parametrize(
    ("evidence", "score", "counts"),
    [
        ([], 0.0, (0, 0)),
        ([proof()], 0.5, (1, 0)),
        ([proof(), proof(), proof()], 0.75, (3, 0)),
        ([proof(kind="stated")], 0.5, (1, 0)),
        ([diagnosis()], 0.2, (1, 0)),
        ([proof(), proof(supports=False)], 1 / 3, (1, 1)),
        ([proof(), diagnosis(supports=False)], 1 / 2.25, (1, 1)),
    ],
)
def test_p3_the_evidence_score_is_support_over_all_evidence_and_one(
    evidence: list[Evidence], score: float, counts: tuple[int, int]
) -> None:
    weighed = weigh(evidence, OPTIONS)
    assert (weighed.score, (weighed.support_count, weighed.contradiction_count)) == (pytest.approx(score), counts)


@pytest.mark.parametrize(
    ("evidence", "scripts", "state"),
    [
        ([], [], "active"),
        ([proof()], ["verified"], "active"),
        ([proof()], ["unknown"], "active"),
        ([proof()], ["stale"], "stale"),
        ([proof()], ["verified", "missing"], "stale"),
        ([proof(supports=False)], [], "contradicted"),
        ([proof(), proof(supports=False, at=0.0)], [], "contradicted"),  # as much against it as for it
        ([proof(), proof(), proof(supports=False, at=0.0)], [], "active"),
        ([proof(), proof(), proof(supports=False, at=9.0)], ["stale"], "contradicted"),  # the newest proof decides
        ([proof(), proof(), diagnosis(supports=False, at=9.0)], [], "active"),  # a diagnosis is no proof
        ([proof(at=9.0), proof(at=9.0), proof(supports=False, at=9.0)], [], "contradicted"),
    ],
)
def test_p3_contradicted_comes_before_stale_and_stale_before_active(
    evidence: list[Evidence], scripts: list[ScriptState], state: str
) -> None:
    assert state_of(weigh(evidence, OPTIONS), scripts) == state


def test_p3_the_rationale_has_every_part_and_none_for_what_does_not_apply() -> None:
    found = judge(
        weigh([proof(), proof(), proof()], OPTIONS),
        ["stale"],
        updated_at=0.0,
        now=365 * DAY,
        options=OPTIONS,
        fusion_score=0.8,
        ranks={"vector": 2},
        similarity=0.7,
    )
    why = found.rationale
    assert (why.lexical_rank, why.vector_rank, why.vector_distance) == (None, 2, pytest.approx(0.3))
    assert (why.recency_score, why.evidence_boost) == (pytest.approx(0.5), pytest.approx(1.375))
    assert (why.script_staleness_penalty, why.contradiction_penalty) == (0.6, 1.0)
    assert why.final_score == pytest.approx(0.8 * 0.5 * 1.375 * 0.6)
    assert judge(weigh([], OPTIONS), [], 0.0, 0.0, OPTIONS).rationale.final_score is None


kinds = st.sampled_from(["verified outcome", "diagnostic episode", "stated"])
records = st.builds(proof, supports=st.booleans(), kind=kinds, at=st.floats(0, 1e9))


@settings(max_examples=100)
@given(st.lists(records, max_size=8), st.floats(0, 1), st.floats(0, 2e9))
def test_p3_the_parts_multiply_to_the_final_score_exactly(evidence: list[Evidence], fused: float, now: float) -> None:
    why = judge(weigh(evidence, OPTIONS), ["stale"], 1e9, now, OPTIONS, fusion_score=fused).rationale
    parts = (why.recency_score, why.evidence_boost, why.script_staleness_penalty, why.contradiction_penalty)
    assert why.final_score == pytest.approx(fused * math.prod(parts), rel=1e-12)
    assert all(0 <= part <= OPTIONS.evidence_boost for part in parts)


@settings(max_examples=100)
@given(st.lists(records, max_size=8))
def test_p3_more_support_never_lowers_the_evidence_score_and_it_stays_below_1(evidence: list[Evidence]) -> None:
    before = weigh(evidence, OPTIONS).score
    assert before <= weigh([*evidence, proof()], OPTIONS).score < 1
    assert weigh([*evidence, proof(supports=False)], OPTIONS).score <= before


# --- is the script still the one that worked --------------------------------------------------------------


def test_p3_a_script_is_verified_until_its_file_changes_or_goes(tmp_path: Path) -> None:
    script = tmp_path / "deploy.sh"
    script.write_text("echo one\n", encoding="utf-8")
    freshness = Freshness(tmp_path)
    held = {"deploy.sh": freshness.sha256("deploy.sh") or ""}
    assert freshness.state(held) == "verified"
    script.write_text("echo two!\n", encoding="utf-8")
    assert freshness.state(held) == "stale"
    script.write_text("echo one\n", encoding="utf-8")
    assert freshness.state(held) == "verified"
    script.unlink()
    assert freshness.state(held) == "missing"


def test_the_worst_of_several_files_decides_and_an_unknown_hash_is_no_proof(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a", encoding="utf-8")
    (tmp_path / "b").write_text("b", encoding="utf-8")
    freshness = Freshness(tmp_path)
    good = freshness.sha256("a") or ""
    assert freshness.state({}) == "verified"
    assert freshness.state({"a": good, "b": ""}) == "unknown"
    assert freshness.state({"a": good, "b": good}) == "stale"
    assert freshness.state({"a": good, "b": good, "c": good}) == "missing"


def test_a_file_outside_the_project_a_folder_and_a_huge_file_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "huge").write_bytes(b"x" * (MAX_BYTES + 1))
    freshness = Freshness(root)
    assert [freshness.sha256(path) for path in ("../outside", "link", "folder", "a\0b")] == [None] * 4
    assert freshness.sha256("huge") == ""
