"""What every store promises, run over every engine."""

from __future__ import annotations

import json
import math
import random
import struct
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storing import (
    ANALYZER,
    EVERYTHING,
    SPACE,
    doc,
    embed,
    fact,
    found,
    held,
    ids_of,
    near,
    owners,
    random_unit,
    unit,
    where,
)

from grounded_mcp.entities import entity_id
from grounded_mcp.errors import NotFound, StoreError, StoreMismatch, StoreStopped
from grounded_mcp.events import Caller, Met, Opened, Recalled, Reported
from grounded_mcp.stopping import called_off, while_wanted
from grounded_mcp.stores.base import MAX_BATCH, NotedItem, NotedRecall, NotedSession, Store
from grounded_mcp.stores.rules import MAX_K, MAX_TERMS
from grounded_mcp.values import (
    Clean,
    Evidence,
    Filter,
    Item,
    Passage,
    PassageId,
    Project,
    Record,
    SaveReport,
    ScopeFilter,
    Space,
    Vector,
)

Open = Callable[..., Any]
EAST, NORTH, WEST = unit(1, 0, 0, 0), unit(0, 1, 0, 0), unit(-1, 0, 0, 0)


# --- saving and reading back ------------------------------------------------------------------------------


def test_an_item_comes_back_as_it_was_saved(store: Store) -> None:
    record = fact(
        "f1",
        "Porträt 表 \U0001f600 'quoted' \x00 end",
        "project:a",
        key="topic",
        importance=0.6,
        pinned=True,
        origin="stated",
        created_at=1.5,
        updated_at=2.25,
        content_hash="abc",
        attrs={"branch": "main", "ünï": "çode"},
    )
    assert store.save([record]) == SaveReport(added=1, pending=1)
    assert store.item("f1") == (record.item, record.passages)


def test_the_bodies_of_passages_joined_are_the_text_exactly(store: Store) -> None:
    text = "# One\r\n\r\n\ttabs\u2028and  spaces \n\n" * 40
    pieces = [text[start : start + 97] for start in range(0, len(text), 97)]
    store.save([doc("a.md", *pieces)])
    assert "".join(passage.body for passage in store.item("doc_a.md")[1]) == text


def test_an_item_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match="doc_none"):
        store.item("doc_none")


def test_saving_the_same_record_again_changes_nothing(store: Store) -> None:
    records = [fact("f1", "one"), doc("a.md", "two", "three")]
    assert store.save(records) == SaveReport(added=2, pending=3)
    assert store.save(records) == SaveReport(unchanged=2)


def test_a_changed_field_is_an_update_that_keeps_the_vectors(store: Store) -> None:
    store.save([fact("f1", "one")])
    (passage,) = embed(store, "f1", EAST)
    assert store.save([fact("f1", "one", pinned=True)]) == SaveReport(updated=1)
    assert store.fetch([passage])[passage].item.pinned
    assert near(store, EAST) == ["f1"]


def test_only_changed_passages_lose_their_vectors(store: Store) -> None:
    store.save([doc("a.md", "alpha", "bravo", "charlie")])
    first, _, third = embed(store, "doc_a.md", EAST, NORTH, WEST)
    assert store.save([doc("a.md", "new", "alpha", "changed", "charlie")]) == SaveReport(updated=1, pending=2)
    stored = store.fetch([first, third])
    assert {stored[first].passage.seq, stored[third].passage.seq} == {1, 3}
    assert [passage.body for passage in store.item("doc_a.md")[1]] == ["new", "alpha", "changed", "charlie"]
    assert [hit.passage for hit in store.nearest(EAST, EVERYTHING, 5)] == [first, third]
    assert found(store, "bravo") == []
    assert found(store, "changed") == ["doc_a.md"]


def test_equal_passages_of_one_item_are_all_kept(store: Store) -> None:
    store.save([doc("a.md", "same", "same", "other")])
    assert store.save([doc("a.md", "same", "same", "same")]) == SaveReport(updated=1, pending=1)
    assert len(store.lexical(["same"], EVERYTHING, 10)) == 3


def test_moved_lines_are_followed_without_new_vectors(store: Store) -> None:
    record = doc("a.md", "alpha")
    store.save([record])
    (passage,) = embed(store, "doc_a.md", EAST)
    moved = replace(record, passages=(record.passages[0]._replace(start_line=7, end_line=9),))
    assert store.save([moved]) == SaveReport(updated=1)
    assert store.fetch([passage])[passage].passage.start_line == 7


def test_a_new_title_or_heading_is_indexed_and_embedded_anew(store: Store) -> None:
    record = doc("guide.md", "press the lever", heading="Install > Linux")
    store.save([record])
    embed(store, "doc_guide.md", EAST)
    assert found(store, "guide linux") == ["doc_guide.md"]
    renamed = replace(record, item=replace(record.item, title=Clean("manual.md")))
    assert store.save([renamed]) == SaveReport(updated=1, pending=1)
    assert store.pending(1)[0].text == "manual.md > Install > Linux\npress the lever"
    assert found(store, "manual") == ["doc_guide.md"]
    assert found(store, "guide") == []


def test_an_item_that_moves_to_another_scope_is_found_only_there(store: Store) -> None:
    store.save([fact("f1", "lever", "project:a")])
    embed(store, "f1", EAST)
    assert store.save([fact("f1", "lever", "project:b")]) == SaveReport(updated=1)
    for scope, expected in (("project:a", []), ("project:b", ["f1"])):
        assert found(store, "lever", where(scope)) == expected
        assert near(store, EAST, where(scope)) == expected


def test_an_item_that_moves_and_changes_in_one_save_is_found_by_what_it_is_now(store: Store) -> None:
    store.save([doc("a.md", "lever", "knob")])
    store.save([doc("a.md", "lever", "dial", scope="project:b")])
    for scope, expected in (("project:a", []), ("project:b", ["doc_a.md"])):
        assert found(store, "lever", where(scope)) == found(store, "dial", where(scope)) == expected
        assert found(store, "knob", where(scope)) == []


def test_more_records_than_a_batch_are_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="101"):
        store.save([fact(f"f{n}", "x") for n in range(MAX_BATCH + 1)])
    assert store.info().items == {}


def test_a_text_that_no_engine_can_hold_is_a_store_error_and_leaves_nothing(store: Store) -> None:
    with pytest.raises(StoreError, match="surrogates"):
        store.save([fact("f1", "fine"), fact("f2", "broken \ud800 text")])
    assert store.info().items == {}


# --- superseding, marking, deleting -----------------------------------------------------------------------


def test_a_superseded_item_leaves_both_lanes_and_stays_readable(store: Store) -> None:
    store.save([doc("old", "port 8090 ", "here")])
    embed(store, "doc_old", EAST, NORTH)
    assert store.save([fact("new", "port 8091")], supersede={"doc_old": "new"}) == SaveReport(
        added=1, superseded=1, pending=1
    )
    assert found(store, "port here") == ["new"]
    assert near(store, EAST) == []
    old, passages = store.item("doc_old")
    assert (old.state, old.body, passages) == ("superseded", "port 8090 here", ())


def test_superseding_an_unknown_item_stores_nothing(store: Store) -> None:
    with pytest.raises(NotFound, match="ghost"):
        store.save([fact("f1", "one")], supersede={"ghost": "f1"})
    assert store.info().items == {}


def test_superseding_by_an_unknown_item_stores_nothing(store: Store) -> None:
    store.save([fact("f1", "one")])
    with pytest.raises(NotFound, match="ghost"):
        store.save([fact("f2", "two")], supersede={"f1": "ghost"})
    assert (found(store, "one"), found(store, "two")) == (["f1"], [])


def test_history_is_what_an_item_replaced_newest_first(open_store: Open) -> None:
    clock = iter(range(100))
    store = open_store(clock=lambda: float(next(clock)))
    for number in range(4):
        store.save([fact(f"f{number}", f"port 809{number}", key="port")])
    assert [old.body for old in store.history("f3", 10)] == ["port 8092", "port 8091", "port 8090"]
    assert [old.id for old in store.history("f3", 1)] == ["f2"]
    assert store.history("f0", 10) == ()


def test_the_successor_is_what_stands_today_in_the_place_of_a_superseded_item(store: Store) -> None:
    for number in range(3):
        store.save([fact(f"f{number}", f"port 809{number}", key="port")])
    store.save([fact("gone", "no longer true")])
    store.mark(["gone"], "superseded", 9.0)
    assert [getattr(store.successor(f"f{number}"), "id", None) for number in range(3)] == ["f2", "f2", None]
    assert (store.successor("gone"), store.successor("nothing")) == (None, None)
    store.delete(["f2"])
    assert (store.successor("f0"), store.successor("f1")) == (None, None)


def test_an_item_that_takes_a_key_supersedes_its_holder(store: Store) -> None:
    store.save([fact("f1", "port 8090", key="port"), fact("f2", "port 8090", "project:a", key="port")])
    assert store.save([fact("f3", "port 8091", key="port")]) == SaveReport(added=1, superseded=1, pending=1)
    holder = store.find("fact", "global", "port")
    assert holder is not None
    assert holder.id == "f3"
    assert found(store, "port 8090", where("project:a")) == ["f2"]
    assert found(store, "8090", where("global")) == []


def test_a_fact_that_is_stated_again_after_its_replacement_comes_back(store: Store) -> None:
    for text in ("port 8090", "port 8091", "port 8090"):
        store.save([fact(text, text, key="port")])
    assert found(store, "port") == ["port 8090"]
    assert [old.id for old in store.history("port 8090", 10)] == ["port 8091"]


def test_two_items_of_one_batch_with_one_key_leave_the_later_one(store: Store) -> None:
    report = store.save([fact("f1", "one", key="k"), fact("f2", "two", key="k")])
    assert report == SaveReport(added=2, superseded=1, pending=2)
    assert found(store, "one two") == ["f2"]


def test_marking_changes_the_state_and_nothing_else(store: Store) -> None:
    record = doc("a.md", "alpha", updated_at=3.0)
    store.save([record, doc("b.md", "bravo")])
    assert store.mark(["doc_a.md", "doc_a.md", "ghost"], "missing", 9.0) == 1
    assert store.mark(["doc_a.md"], "missing", 10.0) == 0
    assert store.item("doc_a.md")[0] == replace(record.item, state="missing")
    assert found(store, "alpha") == ["doc_a.md"]


def test_marking_as_superseded_takes_an_item_out_of_every_index(store: Store) -> None:
    store.save([fact("f1", "alpha")])
    embed(store, "f1", EAST)
    assert store.mark(["f1"], "superseded", 1.0) == 1
    assert (found(store, "alpha"), near(store, EAST)) == ([], [])


def test_t42_a_deleted_item_is_gone_everywhere_and_the_others_fill_the_answer(open_store: Open) -> None:
    store = open_store()
    store.save([fact(f"f{n}", f"lever number {n}") for n in range(8)])
    for n in range(8):
        embed(store, f"f{n}", unit(1, n / 10, 0, 0))
    assert store.delete(["f0", "f1", "f2", "ghost"]) == 3
    for each in (store, open_store()):
        assert sorted(found(each, "lever", k=5)) == ["f3", "f4", "f5", "f6", "f7"]
        assert near(each, EAST, k=5) == ["f3", "f4", "f5", "f6", "f7"]
        assert each.info().passages == 5
        with pytest.raises(NotFound):
            each.item("f0")


def test_passage_ids_are_never_used_again(store: Store) -> None:
    store.save([fact("f1", "alpha")])
    (before,) = ids_of(store, "f1")
    store.delete(["f1"])
    store.save([fact("f2", "bravo")])
    assert ids_of(store, "f2") > [before]
    assert store.fetch([before]) == {}


# --- keyword search ---------------------------------------------------------------------------------------


def test_r3_any_term_may_match_and_more_terms_rank_higher(store: Store) -> None:
    store.save([fact("both", "green lever"), fact("one", "red lever"), fact("none", "red knob"), fact("pad", "x y z")])
    assert found(store, "green lever") == ["both", "one"]


def test_scores_are_positive_and_fall(store: Store) -> None:
    store.save([fact(f"f{n}", "lever " * (n + 1) + "pad " * 9) for n in range(3)] + [fact("x", "other")])
    scores = [hit.score for hit in store.lexical(["lever"], EVERYTHING, 10)]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_equal_scores_are_ordered_by_passage(store: Store) -> None:
    store.save([fact(f"f{n}", "lever") for n in range(20)])
    hits = [hit.passage for hit in store.lexical(["lever"], EVERYTHING, 7)]
    assert hits == sorted(hits)
    assert owners(store, hits) == [f"f{n}" for n in range(7)]


@pytest.mark.parametrize(("k", "hits"), [(0, 0), (-1, 0), (1, 1), (MAX_K + 1, 3), (10**9, 3), (2**70, 3)])
def test_case_42_k_is_kept_within_bounds_in_both_lanes(store: Store, k: int, hits: int) -> None:
    store.save([fact(f"f{n}", "lever") for n in range(3)])
    for n in range(3):
        embed(store, f"f{n}", EAST)
    assert len(store.lexical(["lever"], EVERYTHING, k)) == hits
    assert len(store.nearest(EAST, EVERYTHING, k)) == hits


def test_terms_beyond_the_limit_are_not_looked_up(store: Store) -> None:
    store.save([fact("f1", "lever"), fact("f2", "knob")])
    terms = [f"absent{n}" for n in range(MAX_TERMS - 1)] + ["lever", "knob"]
    assert owners(store, [hit.passage for hit in store.lexical(terms, EVERYTHING, 5)]) == ["f1"]


def test_no_terms_find_nothing(store: Store) -> None:
    store.save([fact("f1", "lever")])
    assert store.lexical([], EVERYTHING, 5) == ()


@pytest.mark.parametrize(
    "term",
    ['"', '""', "*", "lever*", "NEAR(", "AND", "tokens:lever", "{", "-lever", "\0", "le\0ver", "\u200d", "(", "'"],
)
def test_t15_a_term_is_never_syntax(store: Store, term: str) -> None:
    store.save([fact("f1", "knob")])
    assert store.lexical([term], EVERYTHING, 5) == ()
    assert len(store.lexical([term, "knob"], EVERYTHING, 5)) == 1


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.just("Ünï_code-v2.3"), max_size=5).map(
        " ".join
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_r2_every_token_of_a_text_finds_it_and_no_piece_of_a_token_does(store: Store, text: str) -> None:
    store.save([fact("f1", text)])
    tokens = set(ANALYZER.index(text))
    for token in tokens:
        assert len(store.lexical([token], EVERYTHING, 5)) == 1, token
        assert store.lexical([token + "q0q"], EVERYTHING, 5) == ()


CASES = json.loads((Path(__file__).parent.parent / "data/tokenizer/cases.json").read_text(encoding="utf-8"))


def test_case_19_every_tokenizer_query_hits_and_misses_what_it_must(store: Store) -> None:
    store.save([fact(name, text) for name, text in CASES["documents"].items()])
    for case in CASES["queries"]:
        hits = {int(name) for name in found(store, case["query"], k=30)}
        assert set(case["must_hit"]) <= hits, case
        assert not set(case.get("must_not_hit", [])) & hits, case


# --- filters ----------------------------------------------------------------------------------------------


def test_r4_kinds_and_scopes_bound_both_lanes(store: Store) -> None:
    store.save([fact("f-global", "lever"), fact("f-a", "lever", "project:a"), doc("d-a", "lever", scope="project:a")])
    for item_id in ("f-global", "f-a", "doc_d-a"):
        embed(store, item_id, EAST)
    for filter, expected in (
        (where(), ["f-global", "f-a", "doc_d-a"]),
        (where(kinds=["fact"]), ["f-global", "f-a"]),
        (where("project:a"), ["f-a", "doc_d-a"]),
        (where("project:a", "global", kinds=["fact"]), ["f-global", "f-a"]),
        (where("project:a", kinds=["doc"]), ["doc_d-a"]),
        (where("project:a", kinds=["session"]), []),
        (where(kinds=[]), []),
        (replace(EVERYTHING, scopes=frozenset()), []),
        (where("project:unknown"), []),
        (where("project:a\0b"), []),
        (where("project"), []),
    ):
        assert sorted(found(store, "lever", filter)) == sorted(expected), filter
        assert near(store, EAST, filter) == expected, filter


def test_a_window_of_time_includes_both_its_ends_in_both_lanes(store: Store) -> None:
    store.save([fact(f"f{n}", "lever", updated_at=float(n)) for n in range(5)])
    for n in range(5):
        embed(store, f"f{n}", EAST)
    for since, until, expected in (
        (1.0, 3.0, ["f1", "f2", "f3"]),
        (3.5, None, ["f4"]),
        (None, 0.0, ["f0"]),
        (5.0, None, []),
        (3.0, 1.0, []),
    ):
        filter = where(since=since, until=until)
        assert found(store, "lever", filter) == expected
        assert near(store, EAST, filter) == expected


def test_an_update_moves_an_item_within_time(store: Store) -> None:
    store.save([fact("f1", "lever", updated_at=1.0)])
    embed(store, "f1", EAST)
    store.save([fact("f1", "lever", updated_at=9.0)])
    assert found(store, "lever", where(since=5.0)) == near(store, EAST, where(since=5.0)) == ["f1"]


def test_t23_case_60_a_crowded_project_never_hides_another(store: Store) -> None:
    for start in range(0, 5000, 100):
        store.save([fact(f"a{n}", "deploy the lever service now", "project:a") for n in range(start, start + 100)])
        store.set_vectors(SPACE, {passage.id: EAST for passage in store.pending(100)})
    store.save([fact(f"b{n}", "deploy the lever service some other day", "project:b") for n in range(3)])
    for n in range(3):
        embed(store, f"b{n}", unit(1, 1, n, 0))
    assert sorted(found(store, "deploy lever service now", where("project:b"), 5)) == ["b0", "b1", "b2"]
    assert near(store, EAST, where("project:b"), 5) == ["b0", "b1", "b2"]
    assert all(item_id[0] == "a" for item_id in found(store, "deploy lever", where("project:a"), 50))
    assert len(near(store, EAST, where("project:a"), 50)) == 50


# --- vectors ----------------------------------------------------------------------------------------------


def test_r4_similarity_is_the_cosine_and_the_nearest_come_first(store: Store) -> None:
    store.save([fact("east", "e"), fact("between", "b"), fact("west", "w")])
    embed(store, "west", WEST)
    embed(store, "between", unit(1, 1, 0, 0))
    embed(store, "east", EAST)
    hits = store.nearest(EAST, EVERYTHING, 3)
    assert owners(store, [hit.passage for hit in hits]) == ["east", "between", "west"]
    assert [hit.score for hit in hits] == pytest.approx([1.0, math.sqrt(0.5), -1.0], abs=1e-6)


def test_equally_near_passages_are_ordered_by_id(store: Store) -> None:
    store.save([fact(f"f{n}", str(n)) for n in range(20)])
    for n in reversed(range(20)):
        embed(store, f"f{n}", EAST)
    assert near(store, EAST, k=7) == [f"f{n}" for n in range(7)]


def test_r4_the_nearest_of_many_are_those_of_an_exact_search(store: Store) -> None:
    source, space = random.Random(7), Space("model-b", 32)
    centres = [[source.gauss(0, 1) for _ in range(32)] for _ in range(20)]
    near_one = lambda: unit(*(x + source.gauss(0, 0.6) for x in source.choice(centres)))  # noqa: E731
    for start in range(0, 1500, 100):
        store.save([fact(f"f{n}", str(n)) for n in range(start, start + 100)])
    vectors = {passage.id: near_one() for passage in store.pending(1500)}
    store.set_vectors(space, vectors)
    unpacked = {each: struct.unpack("<32f", vector) for each, vector in vectors.items()}
    for query in (near_one() for _ in range(10)):
        asked = struct.unpack("<32f", query)
        exact = sorted(unpacked, key=lambda each: -math.fsum(x * y for x, y in zip(unpacked[each], asked, strict=True)))
        assert [hit.passage for hit in store.nearest(query, EVERYTHING, 10)] == exact[:10]
        assert len({hit.passage for hit in store.nearest(query, EVERYTHING, 200)} & set(exact[:200])) >= 198


def test_among_few_even_the_smallest_difference_counts(store: Store) -> None:
    store.save([fact(f"f{n}", str(n)) for n in range(100)])
    waiting = [passage.id for passage in store.pending(100)]
    store.set_vectors(SPACE, {each: unit(1, at * 1e-5, 0, 0) for at, each in enumerate(waiting)})
    hits = store.nearest(unit(1, 1, 0, 0), EVERYTHING, 5)
    assert [hit.passage for hit in hits] == waiting[:-6:-1]


BROKEN = {
    "too short": Vector(bytes(12)),
    "too long": unit(1, 0, 0, 0, 0),
    "empty": Vector(b""),
    "odd": Vector(bytes(15)),
    "not a number": Vector(struct.pack("<4f", math.nan, 0, 0, 0)),
    "infinite": Vector(struct.pack("<4f", math.inf, 0, 0, 0)),
    "zero": Vector(bytes(16)),
    "huge": Vector(struct.pack("<4f", 1e38, 0, 0, 0)),
    "not of unit length": Vector(struct.pack("<4f", 1.01, 0, 0, 0)),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_case_12_a_vector_that_is_no_unit_vector_is_neither_stored_nor_searched_for(store: Store, fault: str) -> None:
    store.save([fact("f1", "one"), fact("f2", "two")])
    embed(store, "f1", EAST)
    (waiting,) = ids_of(store, "f2")
    with pytest.raises(StoreError):
        store.set_vectors(SPACE, {waiting: BROKEN[fault]})
    with pytest.raises(StoreError):
        store.nearest(BROKEN[fault], EVERYTHING, 5)
    assert ids_of(store, "f2") == [waiting]
    assert near(store, EAST) == ["f1"]


def test_a_broken_vector_among_good_ones_stores_none_of_them(store: Store) -> None:
    store.save([fact("f1", "one"), fact("f2", "two")])
    first, second = (passage.id for passage in store.pending(2))
    with pytest.raises(StoreError, match="length 0"):
        store.set_vectors(SPACE, {first: EAST, second: BROKEN["zero"]})
    assert store.info().vectors == {"pending": 2, "ok": 0, "none": 0}
    assert store.space() is None


def test_a_passage_that_cannot_have_a_vector_stops_waiting_and_is_found_by_keyword(store: Store) -> None:
    store.save([fact("f1", "lever")])
    (passage,) = ids_of(store, "f1")
    assert store.set_vectors(SPACE, {passage: None}) == 0
    assert store.info().vectors == {"pending": 0, "ok": 0, "none": 1}
    assert (near(store, EAST), found(store, "lever")) == ([], ["f1"])


def test_vectors_of_passages_that_are_gone_are_skipped(store: Store) -> None:
    store.save([fact("f1", "one"), fact("f2", "two")])
    gone, kept = (passage.id for passage in store.pending(2))
    store.delete(["f1"])
    assert store.set_vectors(SPACE, {gone: EAST, kept: EAST}) == 1
    assert near(store, EAST) == ["f2"]


def test_a_search_before_there_are_vectors_finds_nothing(store: Store) -> None:
    store.save([fact("f1", "one")])
    assert store.nearest(EAST, EVERYTHING, 5) == ()


@pytest.mark.parametrize("other", [Space("model-b", 4), Space("model-a", 5)])
def test_t5_case_44_vectors_of_two_spaces_never_mix(store: Store, other: Space) -> None:
    store.save([fact("f1", "one"), fact("f2", "two")])
    embed(store, "f1", EAST)
    (waiting,) = ids_of(store, "f2")
    strange = unit(*[1.0] * other.dimensions)
    with pytest.raises(StoreError, match=r"holds vectors of model-a \(4 dimensions\)"):
        store.set_vectors(other, {waiting: strange})
    with pytest.raises(StoreError, match="model-a"):
        store.nearest(strange, EVERYTHING, 5, space=other)
    assert store.space() == SPACE
    assert found(store, "two") == ["f2"]
    assert owners(store, [hit.passage for hit in store.nearest(EAST, EVERYTHING, 5, space=SPACE)]) == ["f1"]


def test_case_25_a_reset_makes_room_for_another_space(store: Store) -> None:
    store.save([fact("f1", "one"), fact("f2", "two")])
    embed(store, "f1", EAST)
    store.set_vectors(SPACE, {ids_of(store, "f2")[0]: None})
    assert store.reset_vectors() == 2
    assert (store.space(), near(store, EAST)) == (None, [])
    other = Space("model-b", 5)
    embed(store, "f2", unit(1, 0, 0, 0, 0), space=other)
    assert store.space() == other
    assert near(store, unit(1, 0, 0, 0, 0)) == ["f2"]
    assert store.info().vectors == {"pending": 1, "ok": 1, "none": 0}


def test_passages_and_those_that_wait_for_a_vector_are_counted_by_scope(store: Store) -> None:
    store.save([fact("f1", "one"), fact("f2", "two", scope="project:b"), doc("a.md", "x", "y", scope="project:b")])
    embed(store, "f1", EAST)
    assert (store.waiting(), store.passages()) == (3, 4)

    def counted(facts: set[str] | None, others: set[str] | None) -> tuple[int, int]:
        sides = (None if side is None else frozenset(side) for side in (facts, others))
        within = ScopeFilter(*sides, "none")
        return store.waiting(within), store.passages(within)

    assert counted({"global"}, {"global"}) == (0, 1)
    assert counted({"project:b"}, {"project:b"}) == (3, 3)
    assert counted({"global", "project:b"}, {"global"}) == (1, 2)
    assert counted(None, set()) == (1, 2)
    assert counted(set(), None) == (2, 2)
    assert counted(set(), set()) == (0, 0)
    store.save([], supersede={"f2": "f1"})
    assert counted({"project:b"}, {"project:b"}) == (2, 2)


def test_case_25_a_reset_for_a_space_refuses_the_vectors_of_the_one_before(store: Store) -> None:
    store.save([fact("f1", "one"), fact("f2", "two")])
    embed(store, "f1", EAST)
    other = Space("model-b", 5)
    assert (store.reset_vectors(other), store.waiting(), store.space()) == (2, 2, other)
    with pytest.raises(StoreMismatch, match="model-b"):
        embed(store, "f1", EAST)
    assert store.info().vectors == {"pending": 2, "ok": 0, "none": 0}


def test_case_25_while_vectors_are_replaced_a_search_finds_those_of_one_space_or_says_so(open_store: Open) -> None:
    mine, others = open_store(), open_store()
    mine.save([fact(f"f{n}", f"lever {n}") for n in range(60)])
    spaces = {SPACE: EAST, Space("model-b", 4): NORTH}  # in each of them everything points one way
    _embed_waiting(mine, SPACE, EAST)
    assert len(mine.nearest(EAST, EVERYTHING, 100, space=SPACE)) == 60
    over = threading.Event()

    def replace_all() -> None:
        for space, vector in [*spaces.items()] * 3:
            others.reset_vectors(space)
            _embed_waiting(others, space, vector)
        over.set()

    thread = threading.Thread(target=replace_all)
    thread.start()
    while not over.is_set():
        assert len(mine.lexical(["lever"], EVERYTHING, 100)) == 60
        for space, vector in spaces.items():
            with suppress(StoreMismatch):
                scores = {round(hit.score, 6) for hit in mine.nearest(vector, EVERYTHING, 100, space=space)}
                assert scores <= {1.0}
        assert thread.is_alive() or over.is_set()
    thread.join()
    assert len(mine.nearest(NORTH, EVERYTHING, 100, space=Space("model-b", 4))) == 60


def _embed_waiting(store: Store, space: Space, vector: Vector) -> None:
    """Ten at a time, as a filler does."""
    while waiting := store.pending(10):
        store.set_vectors(space, {each.id: vector for each in waiting})


def test_pending_passages_come_by_id_in_pages(store: Store) -> None:
    store.save([fact(f"f{n}", str(n)) for n in range(5)])
    first = store.pending(2)
    rest = store.pending(10, after=first[-1].id)
    assert [passage.text for passage in (*first, *rest)] == ["0", "1", "2", "3", "4"]
    assert store.pending(10, after=rest[-1].id) == store.pending(0) == ()


# --- the rest of the verbs --------------------------------------------------------------------------------


def test_fetch_gives_passages_with_their_item_and_leaves_out_what_is_gone(store: Store) -> None:
    record = doc("a.md", "Alpha one ", "Bravo two", heading="Top")
    store.save([record])
    first, second = ids_of(store, "doc_a.md")
    fetched = store.fetch([second, PassageId(987654), first])
    assert list(fetched) == [second, first]
    assert fetched[second].item == record.item
    assert fetched[second].passage == Passage(1, Clean("Bravo two"), "Top")
    assert (fetched[second].passages, fetched[second].size) == (2, 19)
    assert set(fetched[second].tokens.split()) >= {"bravo", "two", "top"}


def test_find_and_known_see_what_holds_a_key(store: Store) -> None:
    store.save([doc("a.md", "one", content_hash="h1", attrs={"git": "tracked"}), doc("b.md", "two")])
    store.save([fact("f1", "fact without a key", "project:a")])
    store.mark(["doc_b.md"], "missing", 1.0)
    store.save([doc("c.md", "three")])
    store.mark(["doc_c.md"], "superseded", 1.0)
    assert store.find("doc", "project:a", "b.md") is None
    assert store.find("doc", "project:b", "a.md") is None
    known = store.known("doc", "project:a")
    assert {key: (each.id, each.content_hash, each.state) for key, each in known.items()} == {
        "a.md": ("doc_a.md", "h1", "active"),
        "b.md": ("doc_b.md", "", "missing"),
    }
    assert known["a.md"].attrs == {"git": "tracked"}


def test_scopes_are_those_that_hold_something(store: Store) -> None:
    assert store.scopes() == frozenset()
    store.save([fact("f1", "one"), fact("f2", "two", "project:a"), fact("f3", "three", "project:b")])
    store.delete(["f3"])
    assert store.scopes() == {"global", "project:a"}


def test_a_registered_project_is_remembered_as_last_seen(store: Store) -> None:
    store.register(Project("k1", "Old", "path", "/old"), 1.0)
    store.register(Project("k0", "Other", "remote", "/other", "main", "/wt"), 2.0)
    store.register(Project("k1", "New", "remote", "/new"), 3.0)
    assert store.projects() == (
        Project("k0", "Other", "remote", "/other", "main", "/wt"),
        Project("k1", "New", "remote", "/new"),
    )


def test_a_project_that_has_another_key_now_is_registered_once(store: Store) -> None:
    store.register(Project("k1", "One", "path", "/one"), 1.0)
    store.register(Project("k2", "One", "remote", "/one"), 2.0, replaces="k1")
    store.register(Project("k3", "Two", "path", "/two"), 3.0, replaces="k9")
    assert [project.key for project in store.projects()] == ["k2", "k3"]


def test_ids_come_in_order_in_pages_whatever_the_state(store: Store) -> None:
    store.save([fact("f3", "three"), fact("f1", "one"), doc("a.md", "two"), fact("f2", "two", "project:b")])
    store.mark(["f2"], "superseded", 1.0)
    first = store.ids(limit=2)
    assert first == ("doc_a.md", "f1")
    assert store.ids(after=first[-1], limit=10) == ("f2", "f3")
    assert store.ids(after="f3", limit=10) == store.ids(limit=0) == ()


def test_a_superseded_item_that_is_saved_again_stays_history(store: Store) -> None:
    store.save([fact("f1", "one")])
    store.save([fact("f2", "two")], supersede={"f1": "f2"})
    (old,) = store.history("f2", 5)
    store.save([Record(replace(old, body=Clean("won")))])
    assert [(each.id, each.body) for each in store.history("f2", 5)] == [("f1", "won")]
    assert found(store, "won") == []
    store.save([fact("f1", "one")])
    assert (store.history("f2", 5), found(store, "one")) == ((), ["f1"])


def test_scrubbing_leaves_what_is_stored_and_says_that_it_is_done(store: Store) -> None:
    store.save([fact("f1", "one", "project:a"), fact("f2", "lever")])
    store.save([fact("f1", "two", "project:b")])
    assert store.scrub()
    assert store.scopes() == {"project:b", "global"}
    assert (found(store, "lever"), found(store, "two"), found(store, "one")) == (["f2"], ["f1"], [])
    store.save([fact("f3", "three", "project:a")])
    assert found(store, "three", where("project:a")) == ["f3"]


def test_a_secret_is_made_once_and_kept(open_store: Open) -> None:
    first = open_store().secret("redaction")
    assert len(first) == 32
    assert open_store().secret("redaction") == first
    assert open_store().secret("other") != first


def test_info_counts_what_is_there(store: Store) -> None:
    store.save([fact("f1", "one"), doc("a.md", "two", "three"), doc("b.md", "four")])
    embed(store, "f1", EAST)
    info = store.info()
    assert (info.items, info.passages, info.space) == ({"fact": 1, "doc": 2}, 4, SPACE)
    assert info.vectors == {"pending": 3, "ok": 1, "none": 0}
    assert (info.warnings, info.bytes > 0) == ((), True)


def test_a_lease_is_held_by_one_and_given_back(open_store: Open) -> None:
    one, two = open_store(), open_store()
    with one.lease("sync", 60) as mine:
        with two.lease("sync", 60) as other, two.lease("vectors", 60) as unrelated:
            assert (mine, other, unrelated) == (True, False, True)
        with two.lease("sync", 60) as still:
            assert not still
    with two.lease("sync", 60) as mine:
        assert mine


def test_a_lease_that_is_entered_again_is_renewed_and_kept_until_its_outermost_end(open_store: Open) -> None:
    now = [0.0]
    one, two = open_store(clock=lambda: now[0]), open_store(clock=lambda: now[0])
    with one.lease("sync", 10):
        now[0] = 9.0
        with one.lease("sync", 10) as again:
            assert again
        now[0] = 15.0
        with two.lease("sync", 10) as other:
            assert not other


def test_a_lease_lapses_after_its_time(open_store: Open) -> None:
    now = [0.0]
    one, two = open_store(clock=lambda: now[0]), open_store(clock=lambda: now[0])
    with one.lease("sync", 10):
        now[0] = 10.5
        with two.lease("sync", 10) as other:
            assert other
            with one.lease("sync", 10) as again:
                assert not again


def test_two_threads_of_one_store_do_not_share_a_lease(store: Store) -> None:
    seen = []

    def enter() -> None:
        with store.lease("sync", 60) as mine:
            seen.append(mine)

    with store.lease("sync", 60):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(30)
    assert seen == [False]


def test_case_24_parallel_calls_that_fail_take_nothing_from_those_that_succeed(store: Store) -> None:
    failures = []

    def call(number: int) -> None:
        try:
            supersede = {"ghost": f"f{number}"} if number % 2 else None
            store.save([fact(f"f{number}", f"lever {number}")], supersede=supersede)
            assert f"f{number}" in found(store, str(number), k=50)
        except NotFound:
            failures.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(failures) == list(range(1, 40, 2))
    assert sorted(found(store, "lever", k=50)) == sorted(f"f{n}" for n in range(0, 40, 2))


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.scopes()


def test_r17_what_a_store_of_another_order_answers_is_the_same(open_store: Open) -> None:
    """R17: the answers depend on what is stored, not on when it was."""
    source = random.Random(3)
    texts = [" ".join(source.choices(["lever", "knob", "dial", "gear"], k=source.randint(1, 9))) for _ in range(60)]
    store = open_store()
    store.save([fact(f"f{n}", text) for n, text in enumerate(texts)])
    once = store.lexical(["lever", "dial"], EVERYTHING, 20)
    store.save([fact("extra", "lever dial")])
    store.delete(["extra"])
    assert store.lexical(["lever", "dial"], EVERYTHING, 20) == once
    vector = random_unit(source, 4)
    store.set_vectors(SPACE, {passage.id: random_unit(source, 4) for passage in store.pending(100)})
    assert store.nearest(vector, EVERYTHING, 20) == open_store().nearest(vector, EVERYTHING, 20)


# --- where it came from -----------------------------------------------------------------------------------


def seen(session: str, place: int, *, supports: bool = True, at: float = 1.0) -> Evidence:
    return Evidence(session, place, supports, "verified outcome", at, Clean("exit 0"))


def script(command: str, *evidence: Evidence) -> Record:
    item = Item(f"scr_{command}", "script", "project:a", Clean(command), key=command)
    return Record(item, (Passage(0, Clean(command)),), evidence)


def test_evidence_adds_up_and_the_same_place_counts_once(store: Store) -> None:
    store.save([script("make", seen("s1", 1, at=2.0), seen("s2", 4, at=1.0))])
    store.save([script("make", seen("s1", 1, supports=False, at=2.0), seen("s1", 2, at=3.0))])
    assert store.evidence("scr_make") == (
        seen("s2", 4, at=1.0),
        seen("s1", 1, supports=False, at=2.0),
        seen("s1", 2, at=3.0),
    )
    assert store.evidence("scr_none") == ()


def test_what_a_conversation_said_is_taken_back_from_an_exchange_on(store: Store) -> None:
    store.save(
        [script("make", seen("s1", 1), seen("s1", 3)), script("tox", seen("s1", 3)), script("nox", seen("s2", 3))]
    )
    store.save([], retract={"s1": 2})
    assert store.evidence("scr_make") == (seen("s1", 1),)
    with pytest.raises(NotFound):  # it stood on that alone
        store.item("scr_tox")
    assert store.evidence("scr_nox") == (seen("s2", 3),)


def test_evidence_retracted_and_given_again_in_one_save_keeps_its_item(store: Store) -> None:
    store.save([script("make", seen("s1", 1))])
    before = owners(store, [hit.passage for hit in store.lexical(["make"], EVERYTHING, 5)])
    store.save([script("make", seen("s1", 1, at=9.0))], retract={"s1": 0})
    assert (before, store.evidence("scr_make")) == (["scr_make"], (seen("s1", 1, at=9.0),))


def test_a_deleted_conversation_is_no_evidence_and_a_stated_item_needs_none(store: Store) -> None:
    stated = Item("scr_stated", "script", "project:a", Clean("ship"), origin="stated")
    store.save([doc("s1", "talk"), script("make", seen("doc_s1", 1)), Record(stated, (), (seen("doc_s1", 1),))])
    store.delete(["doc_s1"])
    with pytest.raises(NotFound):
        store.item("scr_make")
    assert (store.item("scr_stated")[0], store.evidence("scr_stated")) == (stated, ())


def test_checkpoints_are_kept_with_the_records_and_found_by_prefix(store: Store) -> None:
    store.save([fact("f1", "one")], checkpoints={"codex:1": "{}", "codex:2": "x", "codey:1": "y"})
    store.save([], checkpoints={"codex:2": "z"})
    assert store.checkpoints("codex:") == {"codex:1": "{}", "codex:2": "z"}
    assert store.checkpoints("") == {"codex:1": "{}", "codex:2": "z", "codey:1": "y"}


def test_a_save_that_fails_keeps_neither_checkpoint_nor_evidence(store: Store) -> None:
    with pytest.raises(NotFound):
        store.save([script("make", seen("s1", 1))], supersede={"nobody": "scr_make"}, checkpoints={"a": "b"})
    assert (store.checkpoints(""), store.evidence("scr_make")) == ({}, ())


def test_what_was_buried_is_remembered(store: Store) -> None:
    store.save([fact("f1", "one")])
    assert store.delete(["f1"], bury=["d1", "d2"]) == 1
    store.delete([], bury=["d2"])
    assert store.buried() == {"d1", "d2"}


# --- times ------------------------------------------------------------------------------------------------

DAY = 86_400.0


def talk(item_id: str, *said_at: float, scope: str = "project:a", pieces: int = 1) -> Record:
    """A session with an exchange at each of these times, each in so many pieces."""
    item = Item(item_id, "session", scope, Clean(item_id), created_at=min(said_at), updated_at=max(said_at))
    said = [(turn, at) for turn, at in enumerate(said_at) for _ in range(pieces)]
    return Record(
        item, tuple(Passage(n, Clean(f"{item_id} {n}"), "", turn, turn, at) for n, (turn, at) in enumerate(said))
    )


def timed(
    store: Store, since: float, until: float, filter: Filter = EVERYTHING, k: int = 10
) -> list[tuple[str, float]]:
    """The items that a time window finds, with their scores."""
    hits = store.timed(since, until, filter, k)
    return list(zip(owners(store, [hit.passage for hit in hits]), [round(hit.score, 3) for hit in hits], strict=True))


def test_r6_a_passage_keeps_its_time_and_a_new_one_costs_no_vector(store: Store) -> None:
    store.save([talk("s", 10.0, 20.5)])
    assert [passage.at for passage in store.item("s")[1]] == [10.0, 20.5]
    ids = embed(store, "s", EAST, NORTH)
    assert [store.fetch(ids)[each].passage.at for each in ids] == [10.0, 20.5]
    assert store.save([talk("s", 10.0, 30.0)]) == SaveReport(updated=1)
    assert [passage.at for passage in store.item("s")[1]] == [10.0, 30.0]
    assert store.waiting() == 0


def test_r6_the_session_with_most_exchanges_in_the_window_is_first_and_every_item_comes_before_a_second_hit(
    store: Store,
) -> None:
    store.save(
        [
            talk("one", 12 * DAY, pieces=9),
            talk("three", 8 * DAY, 11 * DAY, 12 * DAY, 13 * DAY, 99 * DAY),
            talk("none", 8 * DAY, 99 * DAY),
        ]
    )
    found = timed(store, 10 * DAY, 14 * DAY)
    assert found == [("three", 0.875), ("one", 0.75), ("three", 0.688), ("three", 0.625), ("none", 0.303)]
    first = store.timed(10 * DAY, 14 * DAY, EVERYTHING, 1)[0].passage
    assert store.fetch([first])[first].passage.at == 11 * DAY


def test_r6_outside_the_window_the_nearest_are_next_as_far_as_twice_its_length(store: Store) -> None:
    store.save([talk("before", 9 * DAY), talk("after", 18 * DAY), talk("far", 23 * DAY), talk("long ago", 1 * DAY)])
    assert timed(store, 10 * DAY, 14 * DAY) == [("before", 0.389), ("after", 0.184)]
    assert timed(store, 10 * DAY, 14 * DAY, k=1) == [("before", 0.389)]


def test_r6_what_has_no_times_of_its_own_is_where_it_began_and_ended(store: Store) -> None:
    store.save(
        [
            fact("inside", "one", created_at=11 * DAY, updated_at=11 * DAY),
            fact("around", "two", created_at=1 * DAY, updated_at=99 * DAY),
            fact("changed", "three", created_at=1 * DAY, updated_at=12 * DAY),
            fact("later", "four", created_at=18 * DAY, updated_at=99 * DAY),
            doc("seen.md", "five", "six", created_at=99 * DAY, updated_at=1 * DAY),
        ]
    )
    found = timed(store, 10 * DAY, 14 * DAY)
    assert found == [("inside", 0.75), ("changed", 0.75), ("around", 0.5), ("later", 0.184)]


def test_r6_a_window_without_a_beginning_or_an_end_reaches_everything_there(store: Store) -> None:
    store.save([talk("early", 1.0), talk("late", 50 * DAY), doc("a.md", "one", "two", updated_at=2.0)])
    assert [item for item, _ in timed(store, -math.inf, 3.0)] == ["early", "doc_a.md"]
    assert [item for item, _ in timed(store, 49 * DAY, math.inf)] == ["late"]
    assert [item for item, _ in timed(store, -math.inf, math.inf)] == ["early", "late", "doc_a.md"]


def test_t23_the_filter_acts_inside_a_search_by_time(store: Store) -> None:
    store.save([talk(f"b{n}", 5.0, 6.0, scope="project:b") for n in range(9)])
    store.save([talk("a", 5.0), fact("f", "one", "project:a", created_at=5.0, updated_at=5.0)])
    assert [item for item, _ in timed(store, 4.0, 7.0, where("project:a"), k=2)] == ["a", "f"]
    assert [item for item, _ in timed(store, 4.0, 7.0, where("project:a", kinds=["fact"]))] == ["f"]
    assert [item for item, _ in timed(store, 4.0, 7.0, where(until=5.0))] == ["a", "f"]
    assert timed(store, 4.0, 7.0, where("project:c")) == timed(store, 4.0, 7.0, k=0) == []


def test_what_was_superseded_is_at_no_time(store: Store) -> None:
    store.save([fact("f1", "one", created_at=5.0, updated_at=5.0)])
    store.save([fact("f2", "two", created_at=6.0, updated_at=6.0)], supersede={"f1": "f2"})
    assert [item for item, _ in timed(store, 4.0, 7.0)] == ["f2"]


# --- entities ---------------------------------------------------------------------------------------------


def naming(store: Store, key: str, filter: Filter = EVERYTHING, most: int = 10) -> list[str]:
    """The items whose passages name an entity, by passage."""
    return owners(store, sorted(store.mentions([entity_id(key)], filter, most).get(entity_id(key), ())))


def test_r5_passages_and_what_they_name_are_found_from_either_side(store: Store) -> None:
    store.save([fact("f1", "they met Maria in Porto"), doc("a.md", "nothing", "the Porto team, KB-4156")])
    assert naming(store, "porto") == ["f1", "doc_a.md"]
    assert (naming(store, "kb-4156"), naming(store, "lisbon")) == (["doc_a.md"], [])
    first, _, third = (passage.id for passage in store.pending(10))
    named = store.entities_of([third, first, PassageId(99)])
    assert {passage: set(entities) for passage, entities in named.items()} == {
        first: {entity_id("maria"), entity_id("porto")},
        third: {entity_id("porto"), entity_id("kb-4156")},
    }


def test_an_entity_of_more_passages_than_asked_for_is_told_by_one_more(store: Store) -> None:
    store.save([fact(f"f{n}", f"number {n} is about KB-4156") for n in range(9)])
    entity = entity_id("kb-4156")
    assert [len(store.mentions([entity], EVERYTHING, most)[entity]) for most in (0, 3, 8, 9)] == [1, 4, 9, 9]
    assert store.mentions([], EVERYTHING, 5) == store.entities_of([]) == {}


def test_what_a_passage_names_changes_with_its_text(store: Store) -> None:
    store.save([doc("a.md", "see KB-1234", "see KB-4156")])
    store.save([doc("a.md", "see KB-4156", "see KB-7777")])
    assert [naming(store, key) for key in ("kb-1234", "kb-4156", "kb-7777")] == [[], ["doc_a.md"], ["doc_a.md"]]
    store.delete(["doc_a.md"])
    assert [naming(store, key) for key in ("kb-1234", "kb-4156", "kb-7777")] == [[], [], []]


def test_what_was_superseded_is_named_by_nothing(store: Store) -> None:
    store.save([fact("f1", "see KB-4156")])
    store.save([fact("f2", "see KB-4156 again")], supersede={"f1": "f2"})
    assert naming(store, "kb-4156") == ["f2"]


def test_t23_the_filter_acts_inside_a_search_by_entity(store: Store) -> None:
    store.save([fact(f"b{n}", f"KB-4156, number {n}", "project:b", updated_at=5.0) for n in range(9)])
    store.save([fact("a", "KB-4156", "project:a", updated_at=9.0), doc("a.md", "KB-4156", updated_at=5.0)])
    assert naming(store, "kb-4156", where("project:a"), most=2) == ["a", "doc_a.md"]
    assert naming(store, "kb-4156", where("project:a", kinds=["doc"]), most=1) == ["doc_a.md"]
    assert naming(store, "kb-4156", where(since=6.0), most=1) == ["a"]
    assert naming(store, "kb-4156", where("project:c")) == []
    store.save([fact("a", "KB-4156", "project:c", updated_at=9.0)])
    assert (naming(store, "kb-4156", where("project:c")), naming(store, "kb-4156", where(since=6.0))) == (["a"], ["a"])


# --- telemetry --------------------------------------------------------------------------------------------

AGENT = Caller("s1", "claude-code", "ground_recall")


def recall_of(id: str, *items: str, caller: Caller = AGENT, **fields: Any) -> Recalled:
    return Recalled(**{"at": 100.0, "caller": caller, "id": id, "project": "a", "items": items, **fields})


def test_what_happened_comes_back_in_counters_by_session(store: Store) -> None:
    store.save([fact("f1", "lever"), fact("f2", "wheel")])
    event = recall_of("r1", "f2", "f1", intent="repair", asked="hybrid", mode="lexical", degraded="slow")
    timed = replace(event, embed_ms=1.5, db_ms=2.0, rerank_ms=0.5, total_ms=4.0)
    store.note(
        [Met(90.0, Caller("s2"), "a"), timed, Opened(110.0, AGENT, "f1"), Reported(120.0, AGENT, "r1", True)],
        keep_from=0,
    )
    noted = store.noted(0.0, top=5)
    assert noted.sessions == (NotedSession("s2", "", 90.0, 90.0), NotedSession("s1", "claude-code", 100.0, 120.0))
    times = (1.5, 2.0, 0.5, 4.0)
    how = ("ground_recall", "a", "repair", "hybrid", "lexical", "slow")
    assert noted.recalls == (NotedRecall("r1", "s1", 100.0, *how, *times, results=2, opened=1, reused=True),)
    assert noted.items == (NotedItem("f1", "fact", 1, 1, 1), NotedItem("f2", "fact", 1, 0, 1))
    assert [tuple(each) for each in store.recalled_items(["r1"])] == [
        ("r1", 1, "f2", "fact", False),
        ("r1", 2, "f1", "fact", True),
    ]


def test_opening_counts_for_the_latest_recall_of_that_session_which_named_the_item(store: Store) -> None:
    store.save([fact("f1", "lever"), fact("f2", "wheel")])
    other = replace(AGENT, session="s2")
    recalls = [recall_of("r1", "f1"), recall_of("r2", "f1"), recall_of("r3", "f2"), recall_of("r4", "f1", caller=other)]
    store.note([*recalls, Opened(110.0, AGENT, "f1"), Opened(111.0, AGENT, "nothing")], keep_from=0)
    assert {each.id: each.opened for each in store.noted(0.0).recalls} == {"r1": 0, "r2": 1, "r3": 0, "r4": 0}


def test_the_latest_recall_of_a_session_and_one_by_its_id_are_found(store: Store) -> None:
    store.note([recall_of("r1"), recall_of("r2"), recall_of("r3", caller=replace(AGENT, session="s2"))], keep_from=0)
    assert store.find_recall(session="s1") == "r2"
    assert (store.find_recall(id="r3"), store.find_recall(id="r4"), store.find_recall(session="s9")) == (
        "r3",
        None,
        None,
    )


def test_a_recall_that_is_noted_twice_counts_once_and_the_last_report_stands(store: Store) -> None:
    report = Reported(120.0, AGENT, "r1", True)
    store.note([recall_of("r1"), recall_of("r1"), report, replace(report, reused=False)], keep_from=0)
    assert [(each.id, each.reused) for each in store.noted(0.0).recalls] == [("r1", False)]


def test_what_is_older_than_is_kept_goes_in_passing(store: Store) -> None:
    store.save([fact("f1", "lever")])
    store.note([recall_of("old", "f1"), Met(100.0, Caller("gone"), "a")], keep_from=0)
    store.note([recall_of("new", "f1", at=200.0)], keep_from=150.0)
    noted = store.noted(0.0, top=5)
    assert [each.id for each in noted.recalls] == ["new"]
    assert [each.id for each in noted.sessions] == ["s1"]
    assert noted.items == (NotedItem("f1", "fact", 1, 0, 0),)


def test_case_61_forgetting_an_item_takes_its_rows_and_the_words_that_found_it(open_store: Open) -> None:
    store = open_store()
    store.save([fact("f1", "the lever is green"), fact("f2", "wheel")])
    events = [recall_of("r1", "f1", "f2", query="which lever is green"), recall_of("r2", "f2", query="which wheel")]
    store.note(events, keep_from=0)
    store.delete(["f1"])
    assert [each.item for each in store.recalled_items(["r1", "r2"])] == ["f2", "f2"]
    assert [(each.id, each.results) for each in store.noted(0.0).recalls] == [("r1", 2), ("r2", 1)]
    assert b"which lever" not in held(store)
    assert b"which wheel" in held(store)


def test_case_61_what_was_forgotten_before_it_was_noted_is_not_noted(open_store: Open) -> None:
    store = open_store()
    store.save([fact("f2", "wheel")])
    store.note([recall_of("r1", "f1", "f2", query="which lever is green")], keep_from=0)
    assert [tuple(each) for each in store.recalled_items(["r1"])] == [("r1", 2, "f2", "fact", False)]
    assert b"which lever" not in held(store)


def test_what_could_not_be_noted_is_counted(store: Store) -> None:
    store.note([], keep_from=0, dropped=3)
    store.note([], keep_from=0, dropped=4)
    assert store.noted(0.0).dropped == 7


def test_case_60_what_was_noted_of_one_project_is_told_without_another(store: Store) -> None:
    store.save([fact("f1", "lever"), fact("f2", "wheel")])
    other = Caller("s2", "agent", "ground_recall")
    mine, theirs = recall_of("r1", "f1"), recall_of("r2", "f2", caller=other, project="b")
    store.note([mine, theirs, Met(100.0, Caller("s3"), "b")], keep_from=0)
    noted = store.noted(0.0, project="a", top=5)
    assert [each.id for each in noted.sessions] == ["s1"]
    assert [each.id for each in noted.recalls] == ["r1"]
    assert [each.id for each in noted.items] == ["f1"]
    assert [each.id for each in store.noted(0.0, project="b").sessions] == ["s2", "s3"]


# --- one moment -------------------------------------------------------------------------------------------


def test_what_is_read_in_one_block_is_of_one_moment(store: Store) -> None:
    store.save([fact("f1", "before")])

    def later() -> None:
        thread = threading.Thread(target=lambda: store.save([fact("f2", "after")]))
        thread.start()
        thread.join(10)

    with store.reading():
        assert store.ids(limit=9) == ("f1",)
        later()
        with store.reading():
            assert store.ids(limit=9) == ("f1",)
        assert store.ids(limit=9) == ("f1",)
    assert store.ids(limit=9) == ("f1", "f2")


def test_an_error_in_a_block_ends_it_and_the_store_goes_on(store: Store) -> None:
    with pytest.raises(NotFound), store.reading():
        store.item("nothing")
    store.save([fact("f1", "text")])
    assert store.ids(limit=9) == ("f1",)


# --- called off -------------------------------------------------------------------------------------------

NEVER_ENDS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
LASTS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) SELECT count(*) FROM n"
"""Long enough that it would be noticed if nobody waited."""


def test_f1_a_read_that_nobody_waits_for_ends_and_a_write_is_done(store: Any) -> None:
    store.save([fact("f1", "text")])
    with while_wanted(lambda: True):
        for block in (nullcontext(), store.reading()):
            with pytest.raises(StoreStopped, match="called off"), block:
                store._database.read(lambda db: list(db.execute(NEVER_ENDS)))
        assert store._database.write(lambda db: list(db.execute(LASTS))) == [(400_000,)]
    assert not called_off()
    assert store._database.read(lambda db: list(db.execute(LASTS))) == [(400_000,)]
    assert store.ids(limit=9) == ("f1",)


def test_f1_a_read_that_is_called_off_half_way_leaves_its_connection_to_the_next(store: Any) -> None:
    begun = threading.Event()

    def search() -> None:
        with while_wanted(begun.is_set), pytest.raises(StoreStopped):
            store._database.read(lambda db: (begun.set(), list(db.execute(NEVER_ENDS))))

    threads = [threading.Thread(target=search) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert not any(each.is_alive() for each in threads)
    store.save([fact("f1", "text")])
    assert store.ids(limit=9) == ("f1",)
