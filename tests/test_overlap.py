"""Words scored by overlap over the smaller side: a short fact matches a long question, and ties keep order (R3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.recall.overlap import Scorer, rescore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Hit, PassageId, Ranking


def ranked(query: str, *texts: str, scorer: Scorer = "overlap") -> list[tuple[int, float]]:
    """Texts, numbered from 1 in the order that BM25 gave them, by overlap with a query."""
    analyzer = Analyzer()
    tokens = {PassageId(id_): " ".join(analyzer.index(text)) for id_, text in enumerate(texts, 1)}
    hits = tuple(Hit(id_, 9.0 - id_) for id_ in tokens)
    return list(rescore(Ranking("lexical", "fact", hits), tokens, analyzer.query(query), scorer).hits)  # type: ignore[arg-type]


def test_r3_overlap_is_the_shared_terms_over_the_smaller_side() -> None:
    texts = ("alpha beta zeta eta theta", "alpha epsilon", "alpha beta", "gamma beta delta alpha iota")
    assert ranked("alpha beta gamma delta", *texts) == [(3, 1.0), (4, 1.0), (1, 0.5), (2, 0.5)]


def test_r3_a_term_counts_once_however_often_it_occurs() -> None:
    assert ranked("deploy staging", "deploy deploy deploy deploy logs") == [(1, 0.5)]


def test_r3_a_short_fact_is_not_under_ranked_by_a_long_question() -> None:
    question = "before we start the release tonight, tell me which host the staging deploy goes out from and why"
    essay = "the release notes say which host was tried, why tonight failed, and when we start again"
    assert ranked(question, essay, "staging deploy host")[0] == (2, 1.0)


def test_r3_a_question_about_the_deploy_host_finds_the_host_by_the_word_deploy() -> None:
    host = "deploy: internal-hbr-2291.pineapple.example"
    assert ranked("what's our deploy host", "our lunch is at noon", host)[0][0] == 2


def test_r3_ties_keep_the_order_they_had() -> None:
    assert [id_ for id_, _ in ranked("alpha", "alpha x", "alpha y", "alpha z")] == [1, 2, 3]


def test_r3_a_passage_that_vanished_drops_out() -> None:
    hits = (Hit(PassageId(1), 9.0), Hit(PassageId(2), 8.0))
    left = rescore(Ranking("lexical", "doc", hits), {PassageId(2): "alpha"}, ("alpha",), "overlap")
    assert left == Ranking("lexical", "doc", (Hit(PassageId(2), 1.0),))


def test_r3_nothing_asked_and_nothing_held_share_nothing() -> None:
    hits = (Hit(PassageId(1), 9.0),)
    for terms, held in (((), "alpha"), (("alpha",), ""), ((), "")):
        left = rescore(Ranking("lexical", "doc", hits), {PassageId(1): held}, terms, "overlap")
        assert left.hits == (Hit(PassageId(1), 0.0),)


def test_r3_with_idf_a_term_that_few_candidates_hold_counts_more() -> None:
    texts = ("service one", "service two", "service three", "alpha four")
    assert ranked("service alpha", *texts) == [(1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5)]
    assert [id_ for id_, _ in ranked("service alpha", *texts, scorer="overlap_idf")] == [4, 1, 2, 3]


TERMS = st.lists(st.sampled_from("abcdefgh"), max_size=8)


@given(st.dictionaries(st.integers(1, 9), TERMS, max_size=6), TERMS, st.sampled_from(["overlap", "overlap_idf"]))
def test_r3_overlap_keeps_every_candidate_best_first_on_0_1(
    held: dict[int, list[str]], asked: list[str], scorer: Scorer
) -> None:
    tokens = {PassageId(id_): " ".join(terms) for id_, terms in held.items()}
    ranking = Ranking("lexical", "doc", tuple(Hit(id_, 1.0) for id_ in tokens), below=3)
    done = rescore(ranking, tokens, asked, scorer)
    assert {hit.passage for hit in done.hits} == tokens.keys()
    assert [hit.score for hit in done.hits] == sorted((hit.score for hit in done.hits), reverse=True)
    assert all(0.0 <= hit.score <= 1.0 + 1e-12 for hit in done.hits)
    assert (done.lane, done.kind, done.below) == ("lexical", "doc", 3)


@given(TERMS, TERMS)
def test_r3_overlap_is_the_same_from_either_side(one: list[str], other: list[str]) -> None:
    def share(asked: list[str], held: list[str]) -> float:
        hits = (Hit(PassageId(1), 1.0),)
        return rescore(Ranking("lexical", "doc", hits), {PassageId(1): " ".join(held)}, asked, "overlap").hits[0].score

    assert share(one, other) == share(other, one)


@pytest.mark.parametrize("scorer", ["overlap", "overlap_idf"])
def test_r3_a_passage_that_holds_every_term_scores_1(scorer: Scorer) -> None:
    assert dict(ranked("alpha beta", "beta and more of it alpha", "alpha", scorer=scorer))[1] == pytest.approx(1.0)
