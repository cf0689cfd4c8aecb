"""A project's items under another key, over each engine: nothing is lost, and nothing is embedded again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from storing import doc, embed, fact, found, near, unit, where

from grounded_mcp.errors import InputError, StoreBusy
from grounded_mcp.ingest.renaming import former, remove, rename
from grounded_mcp.values import Project

OLD = Project("git:/quay/.git", "quay", "git common directory", "/quay")
NEW = Project("github.com/acme/quay", "quay", "git remote origin", "/quay")


def furnish(store: Any) -> None:
    store.register(OLD, 5.0)
    store.save([doc(f"{n:03}.md", f"pier {n} is open", scope=OLD.scope) for n in range(75)])
    held = fact("f1", "the lever is red", OLD.scope, key="lever", updated_at=10.0)
    store.save([fact("f2", "levers rust"), fact("f0", "the lever was grey", OLD.scope)])
    store.save([held], supersede={"f0": "f1"})
    embed(store, "f1", unit(1, 0, 0, 0))


def silent(done: int, total: int) -> None:
    assert done <= total


def test_everything_of_a_key_moves_with_its_vectors_and_its_history(store: Any) -> None:
    furnish(store)
    waiting = store.waiting()
    done = rename(store, OLD, NEW, 7.0, silent)
    assert (done.moved, done.dropped, done.retired) == (77, 0, 0)
    assert [project.key for project in store.projects()] == [NEW.key]
    assert store.last_seen() == {NEW.key: 7.0}
    assert store.scopes() == {NEW.scope, "global"}
    assert store.waiting() == waiting
    assert near(store, unit(1, 0, 0, 0), where(NEW.scope)) == ["f1"]
    assert found(store, "pier", where(NEW.scope), 100) != []
    assert found(store, "pier", where(OLD.scope), 100) == []
    assert [item.id for item in store.history("f1", 5)] == ["f0"]
    assert former(store, NEW.scope) == (OLD.scope,)
    assert former(store, OLD.scope) == ()


def test_a_key_that_holds_something_is_refused_with_nothing_moved(store: Any) -> None:
    furnish(store)
    store.save([fact("f9", "the lever is blue", NEW.scope)])
    with pytest.raises(InputError, match="holds 1 items already"):
        rename(store, OLD, NEW, 7.0, silent)
    assert store.info(scopes=(OLD.scope,)).items == {"doc": 75, "fact": 2}
    assert [project.key for project in store.projects()] == [OLD.key]


@pytest.mark.parametrize(("age", "stays"), [(5.0, "f1"), (20.0, "f9")])
def test_of_two_items_of_one_key_the_older_becomes_the_history_of_the_newer(store: Any, age: float, stays: str) -> None:
    furnish(store)
    mine = doc("001.md", "pier 1 is closed", scope=NEW.scope)
    mine = replace(mine, item=replace(mine.item, id="doc_mine"))
    store.save([fact("f9", "the lever is blue", NEW.scope, key="lever", updated_at=age), mine])
    done = rename(store, OLD, NEW, 7.0, silent, merge=True)
    assert (done.moved, done.dropped, done.retired) == (76, 1, 1)
    assert store.find("fact", NEW.scope, "lever").id == stays
    assert {item.id for item in store.history(stays, 5)} >= {"f1", "f9"} - {stays}
    assert store.find("doc", NEW.scope, "001.md").id == "doc_mine"
    assert store.info(scopes=(NEW.scope,)).items == {"doc": 75, "fact": 3}


def test_names_add_up_over_several_renames_and_a_way_back(store: Any) -> None:
    furnish(store)
    third = replace(NEW, key="path:/quay")
    rename(store, OLD, NEW, 7.0, silent)
    rename(store, NEW, third, 8.0, silent)
    assert former(store, third.scope) == (OLD.scope, NEW.scope)
    rename(store, third, OLD, 9.0, silent)
    assert former(store, OLD.scope) == (NEW.scope, third.scope)


def test_a_removed_project_leaves_nothing_behind_and_no_other_is_touched(store: Any) -> None:
    furnish(store)
    store.register(NEW, 6.0)
    assert remove(store, OLD, silent) == 77
    assert store.scopes() == {"global"}
    assert [project.key for project in store.projects()] == [NEW.key]
    assert store.buried() == frozenset()


def test_a_project_that_another_process_syncs_is_left_alone(store: Any, open_store: Any) -> None:
    furnish(store)
    with open_store().lease(f"sync:{OLD.scope}", 60.0) as ours:
        assert ours
        for change in (lambda: rename(store, OLD, NEW, 7.0, silent), lambda: remove(store, OLD, silent)):
            with pytest.raises(StoreBusy):
                change()
    assert store.info(scopes=(OLD.scope,)).items == {"doc": 75, "fact": 2}
