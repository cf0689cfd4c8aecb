"""What every store answers about items that cannot both hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from grounded_mcp.stores.base import Store
from grounded_mcp.values import Item
from tests.stores.storing import fact

PAIR = [("old", "new")]


def linked(store: Store, *ids: str) -> Mapping[str, list[str]]:
    found: Mapping[str, tuple[Item, ...]] = store.conflicts(ids or ("old", "new", "other"))
    return {item_id: [item.id for item in others] for item_id, others in found.items()}


@pytest.fixture
def pair(store: Store) -> Store:
    store.save([fact("old", "port is 8090"), fact("new", "port is 8091"), fact("other", "the pier")], conflicts=PAIR)
    return store


def test_a_conflict_is_told_on_both_sides_with_whole_items(pair: Store) -> None:
    assert linked(pair) == {"old": ["new"], "new": ["old"]}
    assert linked(pair, "old", "none") == {"old": ["new"]}
    assert pair.conflicts(["old"])["old"][0].body == "port is 8091"
    assert pair.conflicts([]) == {}


def test_a_conflict_is_linked_once_and_never_with_itself_or_with_what_is_not_there(pair: Store) -> None:
    pair.save([], conflicts=[*PAIR, ("new", "old"), ("old", "old"), ("old", "gone")])
    assert linked(pair) == {"old": ["new"], "new": ["old"]}


def test_conflicts_come_newest_first_then_by_id(store: Store) -> None:
    times = {"a": 1.0, "c": 5.0, "b": 5.0}
    items = [fact(name, name, updated_at=at) for name, at in times.items()]
    store.save([fact("x", "x"), *items], conflicts=[("x", name) for name in times])
    assert linked(store, "x") == {"x": ["b", "c", "a"]}


def test_a_conflict_ends_with_either_side(pair: Store) -> None:
    pair.delete(["new"])
    pair.save([fact("new", "port is 8091")])
    assert linked(pair) == {}


def test_a_conflict_is_silent_while_one_side_is_superseded(pair: Store) -> None:
    pair.mark(["old"], "superseded", 1.0)
    assert linked(pair) == {}
    pair.save([fact("old", "port is 8090")])
    assert linked(pair) == {"old": ["new"], "new": ["old"]}


def test_what_is_superseded_in_the_same_save_conflicts_no_more(pair: Store) -> None:
    pair.save([fact("third", "port is 8092")], supersede={"new": "third"}, conflicts=[("third", "old")])
    assert linked(pair, "old", "new", "third") == {"old": ["third"], "third": ["old"]}
