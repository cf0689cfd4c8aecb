"""One hop over shared names: what it is worth, where it stops, and the lane on a store with no model anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.entities import EntityId
from grounded_mcp.recall import lanes
from grounded_mcp.recall.graph import GraphOptions, best, related, weight
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import (
    Candidate,
    Clean,
    Filter,
    Hit,
    Item,
    Kind,
    Passage,
    PassageId,
    Query,
    Record,
    ScopeFilter,
)

OPTIONS = GraphOptions()
DEPTHS = lanes.GatherOptions(candidate_factor=3, candidate_minimum=30, session_candidates=1)
MARIA, PORTO, TEAM = EntityId(1), EntityId(2), EntityId(3)
NAMED = {10: (MARIA, PORTO), 11: (PORTO,), 12: (TEAM,), 13: (MARIA, TEAM)}


def mentions(named: dict[int, tuple[EntityId, ...]]) -> dict[EntityId, list[PassageId]]:
    found: dict[EntityId, list[PassageId]] = {}
    for passage, entities in named.items():
        for entity in entities:
            found.setdefault(entity, []).append(PassageId(passage))
    return found


def score(asked: set[EntityId], seeds: list[int], found: set[int], options: GraphOptions = OPTIONS) -> dict[int, float]:
    ids = [PassageId(seed) for seed in seeds]
    named = {PassageId(passage): entities for passage, entities in NAMED.items()}
    scores = related(asked, ids, named, mentions(NAMED), {PassageId(id_) for id_ in found}, options)
    return {passage: round(value, 6) for passage, value in scores.items()}


def test_r5_an_entity_is_worth_less_the_more_passages_name_it() -> None:
    assert [round(weight(count), 3) for count in (1, 2, 10, 100)] == [1.0, 0.591, 0.303, 0.178]


def test_r5_a_passage_scores_by_the_entities_that_the_question_names() -> None:
    assert score({MARIA}, [], set()) == {10: 0.590616, 13: 0.590616}


def test_r5_a_seed_leads_to_what_shares_its_entities_but_not_to_itself() -> None:
    assert score({MARIA}, [10], {10}) == {10: 0.590616, 13: 0.590616, 11: 0.118123}
    assert score(set(), [10], {10}) == {13: 0.118123, 11: 0.118123}


def test_seeds_share_one_weight_by_their_rank() -> None:
    assert score(set(), [11, 12], set()) == {10: 0.078749, 13: 0.039374}


def test_r5_a_common_entity_is_not_followed_and_counts_only_where_it_was_found() -> None:
    few = GraphOptions(common=1)
    assert score({MARIA}, [10], {10, 12}, few) == {10: 0.590616}
    assert score(set(), [10], {10}, few) == {}


def test_the_best_come_first_and_what_was_found_stays_whatever_the_depth() -> None:
    scores = {PassageId(n): value for n, value in ((4, 0.1), (3, 0.5), (2, 0.5), (1, 0.2))}
    assert best(scores, {PassageId(4)}, 2) == (Hit(PassageId(2), 0.5), Hit(PassageId(3), 0.5), Hit(PassageId(4), 0.1))


ENTITIES = st.integers(1, 5).map(EntityId)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.integers(1, 8), st.lists(ENTITIES, max_size=3, unique=True).map(tuple), max_size=8),
    st.sets(ENTITIES, max_size=3),
    st.integers(1, 4),
)
def test_scores_are_positive_bounded_and_the_same_in_any_order(
    named: dict[int, tuple[EntityId, ...]], asked: set[EntityId], common: int
) -> None:
    ids = {PassageId(passage): entities for passage, entities in named.items()}
    seeds, options = list(ids)[:3], GraphOptions(common=common)
    scores = related(asked, seeds, ids, mentions(named), ids.keys(), options)
    backwards = dict(reversed(mentions(named).items()))
    again = related(set(asked), seeds, dict(reversed(ids.items())), backwards, ids.keys(), options)
    assert all(0 < value <= len(asked) + options.hop * 5 for value in scores.values())
    assert best(scores, (), 99) == best(again, (), 99)


# --- the lane ---------------------------------------------------------------------------------------------

TEXTS: dict[str, tuple[Kind, str]] = {
    "maria": ("session", "last year Maria joined the Porto team"),
    "lisbon": ("doc", "the Porto team meets in Lisbon every week"),
    "other": ("doc", "the weather is fine, nothing else"),
    "talk": ("session", "Caroline: we went swimming"),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "home" / "memory.db", Analyzer())
    store.save(
        [
            Record(Item(id_, kind, "project:a", Clean(""), key=id_), (Passage(0, Clean(text)),))
            for id_, (kind, text) in TEXTS.items()
        ]
    )
    yield store
    store.close()


def ask(store: SqliteStore, text: str) -> list[tuple[Kind, list[str]]]:
    """What the lane adds to keyword search, by kind."""
    query = Query(text, ("session", "doc"), "lexical", 10, 0.0, ScopeFilter(None, None, "none"))
    words = lanes.lexical(store, Analyzer().query(text), query, DEPTHS)
    near = [Candidate(hit.passage, ranking.kind, 1.0, ()) for ranking in words for hit in ranking.hits]
    found = lanes.graph(store, lanes.asked(query), lambda: near, query, DEPTHS, OPTIONS)
    assert {ranking.lane for ranking in found} == {"graph"}
    return [
        (ranking.kind, [store.fetch([hit.passage])[hit.passage].item.id for hit in ranking.hits]) for ranking in found
    ]


def test_r5_maria_leads_to_lisbon_though_no_sentence_holds_both(store: SqliteStore) -> None:
    query = "which city does Maria travel to"
    assert "lisbon" not in TEXTS["maria"][1].lower()
    assert store.lexical(Analyzer().query(query), Filter(frozenset({"doc"})), 9) == ()
    assert ask(store, query) == [("session", ["maria"]), ("doc", ["lisbon"])]


def test_r5_who_speaks_is_found_by_a_name_in_small_letters(store: SqliteStore) -> None:
    assert ask(store, "what did caroline do") == [("session", ["talk"]), ("doc", [])]


@pytest.mark.parametrize("text", ["the team and the weather", "ask Zebediah about it", "", "Nothing Here Known"])
def test_r5_a_question_without_a_known_entity_has_no_graph_hits(store: SqliteStore, text: str) -> None:
    assert ask(store, text) == [("session", []), ("doc", [])]
