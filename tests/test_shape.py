"""One flat list: documents not chunks, paraphrases folded, shares, ties and limit as the page says (R10, T28)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.recall.shape import Shaped, shape
from grounded_mcp.values import Candidate, Kind, SourceCount
from tests.candidates import KINDS, SHAPE, candidate

SHARES = {"fact": 0.25, "session": 0.5, "doc": 1.0}


def shaped(candidates: list[Candidate], limit: int = 20, kinds: tuple[Kind, ...] = KINDS, **options: Any) -> Shaped:
    return shape(candidates, limit, kinds, replace(SHAPE, **options))


def ids(result: Shaped) -> list[str]:
    return [each.found.item.id for each in result.candidates if each.found]


WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "karst", "ledge", "mesa",
    "notch", "oasis", "playa", "quarry", "ridge", "strait", "tundra", "upland", "valley", "weir", "yard", "zenith",
)  # fmt: skip


def many(kind: Kind, count: int, top: float = 0.9) -> list[Candidate]:
    """Distinct items, best first."""
    return [
        candidate(kind, f"{kind}_{n:02}", body=f"the {WORDS[n]} note", score=top - n / 1000, passage_id=n)
        for n in range(count)
    ]


def test_r10_facts_take_at_most_5_of_20_sessions_10_and_documents_all() -> None:
    everything = many("fact", 25, 0.9) + many("session", 25, 0.8) + many("doc", 25, 0.7)
    assert Counter(c.kind for c in shaped(everything).candidates) == {"fact": 5, "session": 10, "doc": 5}
    assert Counter(c.kind for c in shaped(many("fact", 25) + many("doc", 25)).candidates) == {"fact": 5, "doc": 15}
    assert Counter(c.kind for c in shaped(many("doc", 25)).candidates) == {"doc": 20}


@pytest.mark.parametrize(
    ("limit", "facts", "sessions"), [(20, 5, 10), (10, 3, 5), (5, 2, 3), (4, 1, 2), (2, 1, 1), (1, 1, 1)]
)
def test_r10_a_share_is_rounded_up_and_never_to_zero(limit: int, facts: int, sessions: int) -> None:
    assert len(shaped(many("fact", 25), limit).candidates) == facts
    assert len(shaped(many("session", 25), limit).candidates) == sessions
    assert len(shaped(many("fact", 25), limit, fact_share=0.0).candidates) == 1


def test_a_share_is_not_rounded_up_by_a_rounding_error() -> None:
    assert len(shaped(many("fact", 25), 100, fact_share=0.07).candidates) == 7


def test_r10_a_recall_of_one_source_gets_a_full_limit() -> None:
    assert len(shaped(many("fact", 25), 20, ("fact",)).candidates) == 20
    assert len(shaped(many("fact", 25), 20, ("fact", "fact")).candidates) == 20


def test_r10_a_fact_share_of_1_restores_an_unbounded_lane() -> None:
    assert len(shaped(many("fact", 25), 20, fact_share=1.0).candidates) == 20


def test_r10_one_list_by_score_whatever_the_source() -> None:
    mixed = [
        candidate("fact", "f", body="amber", score=0.3),
        candidate("session", "s", body="birch", score=0.2),
        candidate("doc", "d", score=0.4),
    ]
    assert ids(shaped(mixed)) == ["d", "f", "s"]


def test_r10_ties_are_settled_by_source_then_id() -> None:
    tied = [candidate(kind, f"{kind}_{n}", body=WORDS[n], score=1 / 60) for kind in KINDS for n in (2, 1)]
    assert ids(shaped(tied, 6, fact_share=1.0)) == ["doc_1", "doc_2", "fact_1", "fact_2", "session_1", "session_2"]
    other = ("session", "doc", "fact")
    assert ids(shaped(tied, 6, fact_share=1.0, tie_break_order=other))[::2] == ["session_1", "doc_1", "fact_1"]


def test_r10_scores_are_compared_after_rounding_to_nine_digits() -> None:
    close = [candidate("doc", "b", score=0.5 + 4e-10), candidate("doc", "a", score=0.5)]
    assert ids(shaped(close)) == ["a", "b"]
    apart = [candidate("doc", "a", score=0.5), candidate("doc", "b", score=0.5 + 2e-9)]
    assert ids(shaped(apart)) == ["b", "a"]


def test_r10_an_archived_document_comes_last_whatever_its_score_and_a_missing_one_by_its_score() -> None:
    old = [candidate("doc", state, score=0.9, state=state) for state in ("archived", "missing")]
    assert ids(shaped([*old, *many("doc", 2, 0.1)])) == ["missing", "doc_00", "doc_01", "archived"]


def test_r10_a_generated_report_comes_after_first_hand_material() -> None:
    report = candidate("doc", "report", score=0.9, attrs={"generated": "yes"})
    assert ids(shaped([report, candidate("doc", "note", score=0.1)])) == ["note", "report"]


def test_r10_chunks_of_one_document_collapse_to_the_best_with_their_count() -> None:
    long = [candidate("doc", "long", score=0.5 + n / 100, seq=n, passages=40, passage_id=n) for n in (3, 7, 5)]
    result = shaped([*long, candidate("doc", "other", score=0.1, passage_id=99)])
    (best, other) = result.candidates
    assert (best.found.passage.seq, best.chunks, other.chunks) == (7, 3, 1)  # type: ignore[union-attr]
    assert result.pruned["collapsed"] == 2


def test_r10_counts_are_of_documents_and_every_cut_shows() -> None:
    chunks = [candidate("doc", "long", score=0.1, seq=n, passage_id=n) for n in range(9)]
    result = shaped([*many("fact", 9), *chunks], 8)
    assert result.by_source == {
        "fact": SourceCount(returned=2, available=9, truncated=True),
        "session": SourceCount(returned=0, available=0, truncated=False),
        "doc": SourceCount(returned=1, available=1, truncated=False),
    }
    assert result.available == 10
    assert result.pruned == {"collapsed": 8, "folded": 0, "laneShare": 7, "limit": 0}
    assert shaped(many("doc", 9), 8).pruned["limit"] == 1


PARAPHRASES = (
    "tests run with `make check`",
    "Run the tests with `make check`.",
    "use `make check` to run the test suite",
    "`make check` runs the tests",
    "The test command is `make check`",
    "To test, run make check",
    "All tests are executed via make check",
    "We always run our tests through `make check`",
    "Testing is done with make check",
)
OTHERS = ("port is 8090", "port is 8091", "do not use make check on CI")


@pytest.mark.parametrize("turn", range(9))
def test_t28_nine_paraphrases_become_one_and_both_ports_and_the_negation_stay(turn: int) -> None:
    texts = [*PARAPHRASES[turn:], *PARAPHRASES[:turn], *OTHERS]
    facts = [
        candidate("fact", f"fact_{n:02}", body=text, score=0.9 - n / 100, passage_id=n) for n, text in enumerate(texts)
    ]
    result = shaped(facts, 5, ("fact",))
    assert [each.found.passage.body for each in result.candidates if each.found] == [texts[0], *OTHERS]
    assert [each.duplicates for each in result.candidates] == [8, 0, 0, 0]
    assert result.by_source["fact"] == SourceCount(returned=4, available=4, truncated=False)
    assert result.pruned["folded"] == 8


def folded(one: dict[str, Any], other: dict[str, Any], kind: Kind = "fact") -> bool:
    pair = [
        candidate(kind, "a", **{"body": PARAPHRASES[0], **one}),
        candidate(kind, "b", **{"body": PARAPHRASES[1], **other}),
    ]
    return len(shaped(pair, 5, (kind,)).candidates) == 1


def test_r10_near_identical_conversations_fold_and_documents_never_do() -> None:
    assert folded({}, {}, "fact")
    assert folded({}, {}, "session")
    assert not folded({}, {}, "doc")


def test_only_facts_of_one_scope_fold() -> None:
    assert not folded({"scope": "project:alpha"}, {"scope": "global"})
    assert folded({"scope": "project:alpha"}, {"scope": "project:alpha"})


def test_a_fact_of_several_passages_is_not_judged_by_one_of_them() -> None:
    assert not folded({"passages": 2}, {"passages": 2})
    assert folded({"passages": 2}, {"passages": 2}, "session")


def test_the_best_instance_of_a_fold_is_kept() -> None:
    pair = [
        candidate("fact", "worse", body=PARAPHRASES[0], score=0.1),
        candidate("fact", "better", body=PARAPHRASES[3], score=0.2),
    ]
    assert ids(shaped(pair)) == ["better"]


def test_two_paraphrases_meet_through_a_third() -> None:
    texts = ("unit tests run with make check", "tests run with make check", "slow tests run with make check")
    facts = [candidate("fact", f"f{n}", body=text, score=0.9 - n / 10) for n, text in enumerate(texts)]
    assert [each.duplicates for each in shaped(facts, 5, ("fact",)).candidates] == [2]
    assert len(shaped([facts[0], facts[2]], 5, ("fact",)).candidates) == 2


def test_shape_needs_fetched_passages() -> None:
    with pytest.raises(ValueError, match="after fetch"):
        shaped([candidate()._replace(found=None)])


def candidates_of(rows: list[tuple[Kind, int, int, int, int, str]]) -> list[Candidate]:
    return [
        candidate(
            kind, f"{kind}_{id_}", body=f"{WORDS[words]} is {port}", score=score / 8, seq=seq, passage_id=n, state=state
        )
        for n, (kind, id_, seq, score, port, state) in enumerate(rows)
        for words in [id_]
    ]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.integers(0, 8), st.integers(0, 3), st.integers(0, 4), st.integers(1, 2),
        st.sampled_from(["active", "active", "archived"]),
    ),
    max_size=24,
    unique_by=lambda row: (row[0], row[1], row[2]),
)  # fmt: skip


@given(ROWS, st.integers(1, 12), st.permutations(range(24)))
def test_r17_the_order_is_total_and_no_input_order_changes_it(rows: list[Any], limit: int, order: list[int]) -> None:
    given_order = candidates_of(rows)
    shuffled = [given_order[place] for place in order if place < len(given_order)]
    one, other = shaped(given_order, limit), shaped(shuffled, limit)
    assert ids(one) == ids(other)
    assert one.by_source == other.by_source
    assert one.candidates == other.candidates


@given(ROWS, st.integers(1, 12), st.sampled_from([KINDS, ("fact", "doc"), ("session",)]))
def test_no_limit_and_no_share_is_exceeded_and_the_counts_add_up(
    rows: list[Any], limit: int, kinds: tuple[Kind, ...]
) -> None:
    found = [each for each in candidates_of(rows) if each.kind in kinds]
    result = shaped(found, limit, kinds)
    assert len(result.candidates) <= limit
    assert len(set(ids(result))) == len(ids(result))
    for kind, count in result.by_source.items():
        ceiling = limit if len(kinds) == 1 else max(1, -int(-SHARES[kind] * limit // 1))
        assert count.returned == sum(each.kind == kind for each in result.candidates) <= ceiling
        assert count.truncated == (count.returned < count.available)
    assert result.available == sum(count.available for count in result.by_source.values())
    assert len(found) == len(result.candidates) + sum(result.pruned.values())
    assert sum(each.chunks for each in result.candidates) <= len(found)
