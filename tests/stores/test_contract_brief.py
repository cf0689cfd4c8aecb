"""What a store hands over for a brief, on every engine."""

from __future__ import annotations

from storing import doc, fact

from grounded_mcp.concrete import entity_id
from grounded_mcp.foreground import Most, Weights
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record

MOST = Most(facts=3, sessions=2, scripts=2, learnings=1)


def other(kind: str, id: str, text: str, at: float, *evidence: Evidence) -> Record:
    made = Item(id, kind, "project:a", Clean(text), created_at=at, updated_at=at)  # type: ignore[arg-type]
    return Record(made, (Passage(0, Clean(text)),), evidence)


def seen(place: int, supports: bool, at: float) -> Evidence:
    return Evidence("s", place, supports, "verified outcome", at, Clean(""))


def test_facts_come_pinned_first_then_by_importance_then_the_newest(store: Store) -> None:
    store.save(
        [
            fact("low", "low", importance=0.1, updated_at=9.0),
            fact("old", "old", importance=0.5, updated_at=1.0),
            fact("new", "new", importance=0.5, updated_at=2.0),
            fact("pin", "pin", importance=0.0, pinned=True),
            fact("elsewhere", "elsewhere", scope="project:b", pinned=True),
        ]
    )
    found = store.foreground({"global"}, {"global"}, MOST, Weights())
    assert [note.id for note in found.facts] == ["pin", "new", "old"]
    assert found.counts == {"fact": 4}
    assert found.facts[0].text == "pin"


def test_the_rest_comes_newest_first_and_scripts_by_their_evidence(store: Store) -> None:
    store.save(
        [
            *(other("session", f"s{at}", f"talk {at}", float(at)) for at in range(4)),
            other("learning", "l1", "lesson", 1.0),
            doc("d", "text"),
            other("script", "once", "make once", 1.0, seen(1, True, 5.0)),
            other("script", "twice", "make twice", 1.0, seen(2, True, 3.0), seen(3, True, 4.0)),
            other("script", "failed", "make failed", 1.0, seen(4, True, 5.0), seen(5, False, 6.0)),
        ]
    )
    found = store.foreground({"project:a"}, {"project:a"}, MOST, Weights())
    assert [note.id for note in found.sessions] == ["s3", "s2"]
    assert [note.id for note in found.scripts] == ["twice", "once"]
    assert [note.id for note in found.learnings] == ["l1"]
    assert found.counts == {"session": 4, "learning": 1, "doc": 1, "script": 3}


def test_what_names_an_entity_is_found_whole_and_what_all_name_is_not(store: Store) -> None:
    many = [fact(f"f{n}", f"Number {n} of KB-7") for n in range(4)]
    store.save([*many, fact("x", "KB-8 and KB-9"), fact("y", "KB-9"), fact("z", "KB-9", scope="project:b")])
    asked = [entity_id(key) for key in ("kb-7", "kb-8", "kb-9")]
    found = store.naming(asked, {"global"}, {"global"}, 3, 10)
    assert [note.id for note in found] == ["x", "y"]
    assert len(store.naming(asked, {"global"}, {"global"}, 4, 5)) == 5
    assert store.naming([], {"global"}, {"global"}, 4, 5) == ()
