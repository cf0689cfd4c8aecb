"""The store of one identity: every verb of the contract is bounded, and one that is new is missed."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storing import EVERYTHING, doc, embed, fact, found, near, unit, where

from grounded_mcp.errors import NotAllowed, NotFound
from grounded_mcp.events import Caller, Recalled
from grounded_mcp.foreground import ELSEWHERE
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.bounded import BoundedStore, rights
from grounded_mcp.values import Project

SCOPES = ("global", "project:mine", "project:theirs", "agent:a")


@pytest.fixture
def mine(store: Any) -> BoundedStore:
    """Of two projects that say the same."""
    for name in ("mine", "theirs"):
        store.register(Project(name, name, "test", f"/srv/{name}"), 1.0)
        store.save([fact(f"fact_{name}", "the lever is red", scope=f"project:{name}", key="lever")])
        store.save([doc(f"{name}.md", "valves of the house", scope=f"project:{name}")])
        embed(store, f"fact_{name}", unit(1, 0, 0, 0))
        store.note([Recalled(1.0, Caller(name), f"recall_{name}", name, items=(f"fact_{name}",))], keep_from=0.0)
    store.save([], conflicts=[("fact_mine", "fact_theirs")])
    return BoundedStore(store, rights(["mine"], [], read_only=False))


def test_every_verb_of_a_store_has_been_thought_about() -> None:
    verbs = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert verbs
    assert verbs <= set(vars(BoundedStore))


def test_searches_see_what_may_be_read_and_the_best_of_it(store: Any, mine: BoundedStore) -> None:
    assert found(mine, "lever red") == ["fact_mine"]
    assert near(mine, unit(1, 0, 0, 0)) == ["fact_mine"]
    assert found(mine, "lever", where("project:theirs")) == []
    assert [item.id for item in mine.recent(EVERYTHING, 10)] == ["doc_mine.md", "fact_mine"]
    assert mine.lexical(["lever"], where("project:theirs"), 5) == ()
    theirs = [hit.passage for hit in store.lexical(["lever"], where("project:theirs"), 5)]
    assert theirs
    assert mine.fetch(theirs) == mine.entities_of(theirs) == {}


def test_a_successor_that_may_not_be_read_is_none(mine: BoundedStore, store: Any) -> None:
    store.save([], supersede={"fact_mine": "fact_theirs"})
    assert store.successor("fact_mine").id == "fact_theirs"
    assert mine.successor("fact_mine") is None


def test_what_may_not_be_read_is_not_there(mine: BoundedStore) -> None:
    with pytest.raises(NotFound):
        mine.item("fact_theirs")
    assert mine.ids(limit=10) == ("doc_mine.md", "fact_mine")
    assert mine.ids(after="doc_mine.md", limit=1) == ("fact_mine",)
    assert mine.find("fact", "project:theirs", "lever") is None
    assert mine.known("doc", "project:theirs") == {}
    assert mine.history("fact_theirs", 5) == mine.evidence("fact_theirs") == ()
    assert mine.successor("fact_theirs") is None
    assert mine.tallies(["fact_theirs"]) == mine.conflicts(["fact_theirs", "fact_mine"]) == {}
    assert mine.scopes() == {"project:mine"}
    assert mine.projects() == (Project("mine", "mine", "test", ELSEWHERE),)
    assert mine.info().items == {"doc": 1, "fact": 1}
    assert mine.info().location == ""


def test_telemetry_of_another_project_is_not_there(mine: BoundedStore) -> None:
    assert [each.id for each in mine.noted(0.0, project="mine", top=5).recalls] == ["recall_mine"]
    assert mine.noted(0.0, project="theirs", top=5) == mine.noted(0.0, top=5)
    assert mine.noted(0.0, top=5).recalls == ()
    assert mine.find_recall(id="recall_theirs") is mine.find_recall(session="theirs") is None
    assert [each.recall for each in mine.recalled_items(["recall_theirs", "recall_mine"])] == ["recall_mine"]


def test_only_what_may_be_written_is_changed(store: Any, mine: BoundedStore) -> None:
    for attempt in (
        lambda: mine.save([fact("new", "x", scope="project:theirs")]),
        lambda: mine.save([fact("new", "x", scope="global")]),
        lambda: mine.save([], checkpoints={"a": "b"}),
        lambda: mine.register(Project("theirs", "theirs", "test", "/"), 1.0),
        lambda: mine.register(Project("mine", "mine", "test", "/"), 1.0, replaces="theirs"),
        lambda: mine.reset_vectors(),
        lambda: mine.set_vectors(store.space(), {}),
    ):
        with pytest.raises(NotAllowed):
            attempt()
    for attempt in (
        lambda: mine.save([fact("fact_theirs", "x", scope="project:mine")]),
        lambda: mine.save([fact("new", "x", scope="project:mine")], supersede={"fact_theirs": "new"}),
        lambda: mine.save([], supersede={"fact_mine": "fact_theirs"}),
        lambda: mine.save([], retract={"fact_theirs": 0}),
        lambda: mine.delete(["fact_theirs"]),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert mine.mark(["fact_theirs"], "archived", 1.0) == 0
    assert store.item("fact_theirs")[0].state == "active"
    assert mine.save([fact("new", "x", scope="project:mine")], conflicts=[("new", "fact_theirs")]).added == 1
    assert store.conflicts(["new"]) == {}
    assert mine.delete(["new"]) == 1


def test_a_project_stays_as_it_was_registered(store: Any, mine: BoundedStore) -> None:
    mine.register(Project("mine", "other name", "token", ELSEWHERE), 2.0)
    assert {each.root for each in store.projects()} == {"/srv/mine", "/srv/theirs"}


def test_with_a_right_to_read_only_nothing_is_changed(store: Any, mine: BoundedStore) -> None:
    reader = BoundedStore(store, rights(["mine"], [], read_only=True))
    assert found(reader, "lever") == found(mine, "lever")
    for attempt in (
        lambda: reader.save([fact("new", "x", scope="project:mine")]),
        lambda: reader.delete(["fact_mine"]),
        lambda: reader.delete([], bury=["digest"]),
        lambda: reader.mark(["fact_mine"], "archived", 1.0),
        lambda: reader.register(Project("mine", "mine", "test", "/"), 1.0),
    ):
        with pytest.raises(NotAllowed):
            attempt()
    assert store.buried() == frozenset()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.lists(st.tuples(st.sampled_from(SCOPES), st.sampled_from(["lever", "valve"])), min_size=1, max_size=8),
    admitted=st.sets(st.sampled_from(SCOPES[1:])),
    asked=st.none() | st.sets(st.sampled_from(SCOPES)),
)
def test_a_search_is_the_whole_stores_within_the_scopes(
    store: Any, held: list[tuple[str, str]], admitted: set[str], asked: set[str] | None
) -> None:
    store.delete(store.ids(limit=1_000))
    store.save([fact(f"f{at}", f"the {word} number {at}", scope=scope) for at, (scope, word) in enumerate(held)])
    bounded = BoundedStore(store, rights([], admitted, read_only=True))
    reads = admitted | {"global"}
    wanted = where(*(reads if asked is None else reads & asked or {"nothing"}))
    for word in ("lever", "valve"):
        got = bounded.lexical([word], where(*(asked or ())) if asked is None or asked else wanted, 20)
        assert got == store.lexical([word], wanted, 20)
