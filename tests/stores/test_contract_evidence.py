"""What every store answers about evidence in sums, and about what happened last."""

from __future__ import annotations

from grounded_mcp.stores.base import Store
from grounded_mcp.values import Clean, Evidence, EvidenceKind, Item, Kind, Passage, Record, Tally
from tests.stores.storing import where


def keep(
    store: Store, id: str, *evidence: Evidence, kind: Kind = "script", scope: str = "project:a", at: float = 0.0
) -> None:
    item = Item(id, kind, scope, Clean(id), key=id, updated_at=at)
    store.save([Record(item, (Passage(0, Clean(id)),), evidence)])


def seen(place: int, *, supports: bool = True, at: float = 1.0, stated: bool = False) -> Evidence:
    return Evidence("ses_1", place, supports, "stated" if stated else "verified outcome", at, Clean(""))


def test_evidence_is_tallied_by_what_it_says_and_how_with_its_newest_time(store: Store) -> None:
    keep(store, "scr_1", seen(1, at=3.0), seen(2, at=9.0), seen(3, supports=False), seen(4, stated=True))
    keep(store, "lea_1", seen(7), kind="learning")
    keep(store, "scr_3")
    found = store.tallies(["scr_1", "scr_1", "lea_1", "scr_3", "none"])
    assert {id: set(tallies) for id, tallies in found.items()} == {
        "scr_1": {
            Tally("verified outcome", True, 2, 9.0),
            Tally("verified outcome", False, 1, 1.0),
            Tally("stated", True, 1, 1.0),
        },
        "lea_1": {Tally("verified outcome", True, 1, 1.0)},
    }
    assert store.tallies([]) == {}


WEIGHTS: dict[EvidenceKind, float] = {"verified outcome": 1.0, "stated": 1.0, "diagnostic episode": 0.25}


def test_what_was_proven_comes_by_its_evidence_then_by_its_newest_then_by_id(store: Store) -> None:
    keep(store, "scr_torn", seen(1), seen(2, supports=False))
    keep(store, "scr_b", seen(3, at=5.0))
    keep(store, "scr_a", seen(4, at=5.0))
    keep(store, "scr_new", seen(5, at=9.0))
    keep(store, "scr_best", seen(6), seen(7, stated=True))
    keep(store, "scr_failed", seen(8, supports=False), seen(9, stated=True))
    keep(store, "scr_other", seen(10), scope="project:b")
    keep(store, "lea_1", seen(11), kind="learning")
    scripts = where("project:a", kinds=["script"])
    ordered = ("scr_best", "scr_new", "scr_a", "scr_b", "scr_torn")
    assert store.proven(scripts, WEIGHTS, 9) == (ordered, 5)
    assert store.proven(scripts, WEIGHTS, 2) == (ordered[:2], 5)
    assert store.proven(scripts, WEIGHTS, 0) == ((), 5)
    assert store.proven(scripts, {**WEIGHTS, "stated": 0.0}, 1) == (("scr_new",), 5)
    assert store.proven(where("project:c"), WEIGHTS, 9) == ((), 0)


def test_a_superseded_item_is_not_proven_any_more(store: Store) -> None:
    keep(store, "lea_1", seen(1), kind="learning")
    new = Item("lea_2", "learning", "project:a", Clean("new"))
    store.save([Record(new, (Passage(0, Clean("new")),))], supersede={"lea_1": "lea_2"})
    assert store.proven(where(), WEIGHTS, 9) == ((), 0)


def test_the_newest_items_come_first_and_ties_by_id(store: Store) -> None:
    for id, at in (("ses_b", 5.0), ("ses_a", 5.0), ("ses_c", 9.0), ("ses_d", 1.0)):
        keep(store, id, kind="session", at=at)
    keep(store, "ses_other", kind="session", scope="project:b", at=99.0)
    sessions = where("project:a", kinds=["session"])
    assert [item.id for item in store.recent(sessions, 3)] == ["ses_c", "ses_a", "ses_b"]
    store.mark(["ses_c"], "archived", 10.0)
    assert [(item.id, item.state) for item in store.recent(sessions, 1)] == [("ses_c", "archived")]
    assert store.recent(where("project:a", kinds=["session"], until=4.0), 9)[0].id == "ses_d"
    assert store.recent(where("project:a", kinds=["digest"]), 9) == ()
