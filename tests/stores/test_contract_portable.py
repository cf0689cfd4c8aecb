"""What every store does besides the contract of recall: be moved, keep tokens, and count by scope."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from storing import SPACE, doc, embed, fact, found, near, unit

from grounded_mcp.errors import StoreError
from grounded_mcp.events import Caller, Recalled
from grounded_mcp.stores.base import MAX_BATCH
from grounded_mcp.stores.portable import Carried
from grounded_mcp.stores.roster import Token
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.transfer.moving import move
from grounded_mcp.values import Clean, Evidence, Space

Open = Callable[..., Any]


@pytest.fixture
def other(tmp_path: Path) -> Any:
    store = SqliteStore(tmp_path / "other" / "memory.db", Analyzer())
    yield store
    store.close()


def furnish(store: Any) -> None:
    """Items with all that can hang on one."""
    proof = Evidence("session_x", 3, True, "verified outcome", 9.0, Clean("it ran"))
    store.save([fact("f1", "the lever is red"), fact("f2", "the lever is blue", pinned=True, importance=0.9)])
    store.save([doc("a.md", "alpha", "bravo", heading="Top"), replace(fact("f3", "levers rust"), evidence=(proof,))])
    store.save([fact("f0", "the lever is black")], supersede={"f1": "f0"}, conflicts=[("f2", "f0")])
    embed(store, "f2", unit(1, 0, 0, 0))
    _, second = (each.id for each in store.pending(10) if "a.md" in each.text)
    store.set_vectors(SPACE, {second: None})
    store.mark(["doc_a.md"], "missing", 50.0)


def test_what_is_carried_is_all_of_an_item(store: Any) -> None:
    furnish(store)
    carried = {each.record.item.id: each for each in store.carry(limit=50, vectors=True)}
    assert list(carried) == ["doc_a.md", "f0", "f1", "f2", "f3"]
    assert carried["f1"].superseded_by == "f0"
    assert carried["f1"].record.item.body == "the lever is red"
    assert carried["f1"].state_at is not None
    assert (carried["f0"].conflicts, carried["f2"].conflicts) == (("f2",), ("f0",))
    assert [each.place for each in carried["f3"].record.evidence] == [3]
    assert carried["f2"].vectors == {0: unit(1, 0, 0, 0)}
    assert carried["doc_a.md"].vectors == {1: None}
    assert carried["doc_a.md"].state_at == 50.0


@pytest.mark.parametrize(("missed", "same"), [(0, True), (2, True), (3, False)])
def test_a_move_is_verified_although_an_index_misses_two_of_the_nearest(
    other: Any, tmp_path: Path, missed: int, same: bool
) -> None:
    class Indexed(SqliteStore):
        """Finds all but the second, third ... of the nearest, as an index may."""

        def nearest(self, vector: Any, where: Any, k: int, *, space: Any = None) -> Any:
            first, *rest = super().nearest(vector, where, k + missed, space=space)
            return (first, *rest[missed:])

    source = random.Random(5)
    other.save([fact(f"f{n:02}", f"lever {n}") for n in range(40)])
    for n in range(40):
        embed(other, f"f{n:02}", unit(*(source.gauss(0, 1) for _ in range(4))))
    with closing(Indexed(tmp_path / "moved.db", Analyzer())) as target:
        verdict = move(other, target, str.split, 1.0).verdict
    assert verdict.same is same
    assert verdict.differing == ()


def test_items_are_carried_page_by_page_and_without_vectors_unless_asked(store: Any) -> None:
    furnish(store)
    first = store.carry(limit=2)
    rest = store.carry(after=first[-1].record.item.id, limit=50)
    assert [each.record.item.id for each in (*first, *rest)] == ["doc_a.md", "f0", "f1", "f2", "f3"]
    assert all(not each.vectors for each in (*first, *rest))


@pytest.mark.parametrize("way", ["in", "out"])
def test_what_is_adopted_is_as_it_was_and_is_found_alike(store: Any, other: Any, way: str) -> None:
    old, new = (other, store) if way == "in" else (store, other)
    furnish(old)
    carried = old.carry(limit=50, vectors=True)
    assert new.adopt(carried[::-1], space=old.space()).added == 5
    assert new.carry(limit=50, vectors=True) == carried
    for query in ("lever", "red lever", "bravo", "rust"):
        assert found(new, query) == found(old, query)
    assert near(new, unit(1, 0.1, 0, 0)) == near(old, unit(1, 0.1, 0, 0)) == ["f2"]
    assert [each.id for each in new.history("f0", 5)] == ["f1"]
    assert new.info().vectors == old.info().vectors == {"ok": 1, "pending": 3, "none": 1}


def test_adopting_again_changes_nothing(store: Any, other: Any) -> None:
    furnish(other)
    carried = other.carry(limit=50, vectors=True)
    store.adopt(carried, space=SPACE)
    again = store.adopt(carried, space=SPACE)
    assert (again.added, again.updated, again.unchanged, again.pending) == (0, 0, 5, 0)
    assert store.carry(limit=50, vectors=True) == carried


def test_vectors_of_another_space_are_left_out_and_their_passages_wait(store: Any, other: Any) -> None:
    furnish(other)
    store.save([fact("here", "already here")])
    embed(store, "here", unit(0, 1, 0, 0), space=Space("model-b", 4))
    store.adopt(other.carry(limit=50, vectors=True), space=SPACE)
    assert store.space() == Space("model-b", 4)
    assert store.info().vectors["ok"] == 1
    assert near(store, unit(1, 0, 0, 0)) == ["here"]


def test_checkpoints_digests_and_keys_are_adopted_too(store: Any) -> None:
    store.adopt((), checkpoints={"source": "state"}, bury=["digest"])
    assert (store.checkpoints(""), store.buried()) == ({"source": "state"}, {"digest"})
    mine = store.secret("tombstones")
    store.adopt_secret("other", b"k" * 32)
    assert dict(store.secrets()) == {"other": b"k" * 32, "tombstones": mine}
    store.adopt_secret("tombstones", b"n" * 32)
    assert store.secret("tombstones") == b"n" * 32


def test_too_many_at_once_and_a_vector_that_does_not_fit_store_nothing(store: Any) -> None:
    many = [Carried(fact(f"m{n}", "x")) for n in range(MAX_BATCH + 1)]
    with pytest.raises(StoreError):
        store.adopt(many)
    with pytest.raises(StoreError):
        store.adopt([Carried(fact("v", "x"), vectors={0: unit(1, 0)})], space=SPACE)
    assert store.ids(limit=5) == ()


def test_a_conflict_is_linked_once_both_items_are_there(store: Any) -> None:
    store.adopt([Carried(fact("one", "a"), conflicts=("two",))])
    assert store.carry(limit=5)[0].conflicts == ()
    store.adopt([Carried(fact("two", "b"), conflicts=("one",))])
    assert [each.conflicts for each in store.carry(limit=5)] == [("two",), ("one",)]


def test_a_token_is_kept_by_its_digest_and_its_name_is_given_once(store: Any) -> None:
    token = Token("alice", "d" * 64, ("p", "q"), ("global",), True, True, 1.5, 2.5)
    assert store.tokens() == ()
    assert store.add_token(token)
    assert not store.add_token(replace(token, digest="e" * 64))
    assert store.add_token(Token("Bob", "f" * 64, ()))
    assert store.tokens() == (Token("Bob", "f" * 64, ()), token)
    assert store.revoke_token("alice", 9.0)
    assert not store.revoke_token("alice", 10.0)
    assert not store.revoke_token("carol", 9.0)
    assert store.tokens()[1].revoked_at == 9.0


def test_items_are_counted_by_scope(store: Any) -> None:
    furnish(store)
    store.save([fact("p1", "mine", scope="project:a")])
    counted = store.info(scopes=["project:a"])
    assert (dict(counted.items), counted.passages, counted.vectors["pending"]) == ({"doc": 1, "fact": 1}, 3, 2)
    assert store.info(scopes=()).passages == 0
    assert store.info().passages == store.info(scopes=store.scopes()).passages


def test_a_store_says_where_items_lie(store: Any) -> None:
    furnish(store)
    assert store.scopes_of(["f1", "doc_a.md", "nothing"]) == {"f1": "global", "doc_a.md": "project:a"}
    assert store.scopes_of([]) == {}


def test_a_recall_is_found_among_the_projects_that_are_asked_for(store: Any) -> None:
    store.note([Recalled(1.0, Caller("s"), "r1", "a"), Recalled(2.0, Caller("s"), "r2", "b")], keep_from=0.0)
    assert store.find_recall(id="r1") == store.find_recall(id="r1", projects=["a"]) == "r1"
    assert store.find_recall(id="r1", projects=["b"]) is store.find_recall(id="r1", projects=()) is None
    assert (store.find_recall(session="s"), store.find_recall(session="s", projects=["a"])) == ("r2", "r1")
