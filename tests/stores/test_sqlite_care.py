"""Looking after a SQLite store: finding damage, building derived parts anew, deleting for good, backups, size."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from storing import EVERYTHING, KINDS, doc, embed, fact, found, near, random_unit, unit

from grounded_mcp.entities import entity_id
from grounded_mcp.errors import StoreBusy, StoreDamaged, StoreError
from grounded_mcp.stores.rules import passage_digest
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.stores.sqlite_connection import MAX_LOG
from grounded_mcp.stores.sqlite_schema import shipped
from grounded_mcp.text import Analyzer, AnalyzerOptions
from grounded_mcp.values import Space

Open = Callable[..., Any]
EAST, NORTH = unit(1, 0, 0, 0), unit(0, 1, 0, 0)


def filled(sqlite: Open) -> SqliteStore:
    store: SqliteStore = sqlite()
    store.save([fact("f1", "green lever"), fact("f2", "red knob KB-4156", "project:a"), doc("a.md", "alpha", "bravo")])
    embed(store, "f1", EAST)
    embed(store, "f2", NORTH)
    return store


@contextmanager
def raw(store: SqliteStore) -> Iterator[apsw.Connection]:
    """The file as any other program sees it, with no rule of ours in force."""
    with closing(apsw.Connection(str(store.path))) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        yield db


DAMAGE = {
    "row changed with triggers off": (
        "DROP TRIGGER passage_changed; UPDATE passage SET tokens = 'other words' WHERE body = 'green lever'",
        "full-text index does not match",
    ),
    "row added with triggers off": (
        "DROP TRIGGER passage_added; INSERT INTO passage (item, bucket, seq, digest, heading, body, tokens)"
        " SELECT item, bucket, 9, digest, heading, body, tokens FROM passage WHERE body = 'alpha'",
        "full-text index does not match",
    ),
    "full-text index emptied": (
        "INSERT INTO passage_fts (passage_fts) VALUES ('delete-all')",
        "full-text index does not match",
    ),
    "full-text blocks lost": ("DELETE FROM passage_fts_data WHERE id > 10", "full-text index does not match"),
    "full-text table dropped": ("DROP TABLE passage_fts", "passage_fts is missing"),
    "a trigger dropped": ("DROP TRIGGER passage_gone", "passage_gone is missing"),
    "vector missing": ("DELETE FROM vector WHERE passage = 1", "marked as having a vector and have none"),
    "sketch missing": ("DELETE FROM sketch WHERE passage = 1", "sketch of vector 1 is missing"),
    "sketch wrong": ("UPDATE sketch SET code = x'01020304' WHERE passage = 1", "sketch of vector 1 is wrong"),
    "orphan sketch": ("INSERT INTO sketch VALUES (1, 77, x'01020304')", "1 sketches belong to no vector"),
    "orphan vector": ("INSERT INTO vector VALUES (77, x'0000803F000000000000000000000000')", "belongs to no"),
    "vector not finite": (
        "UPDATE vector SET embedding = x'0000C07F000000000000000000000000' WHERE passage = 1",
        "vector 1",
    ),
    "vector too short": ("UPDATE vector SET embedding = x'0000803F' WHERE passage = 1", "vector 1"),
    "mention lost": ("DELETE FROM mention", "the entities of 1 passages are not those"),
    "mention wrong": ("UPDATE mention SET entity = 7", "the entities of 1 passages are not those"),
    "mention of nothing": ("INSERT INTO mention VALUES (7, 1, 77)", "1 mentions of entities belong to no passage"),
    "mentions dropped": ("DROP TABLE mention", "mention is missing"),
    "vector not marked": ("UPDATE passage SET vector_state = 'none' WHERE id = 1", "marked none"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_case_35_damage_to_derived_parts_is_named_and_they_are_built_anew(sqlite: Open, damage: str) -> None:
    statements, named = DAMAGE[damage]
    store = filled(sqlite)
    assert (store.check(), near(store, EAST, k=1)) == ((), ["f1"])
    with raw(store) as db:
        db.execute(statements)
    assert any(named in problem for problem in store.check()), store.check()
    report = store.repair()
    assert (report.left, store.check()) == ((), ())
    assert report.kept is not None
    assert report.kept.name.startswith("memory.db.corrupt-")
    assert found(store, "green lever", k=1) == ["f1"]
    assert found(store, "alpha", k=1) == ["doc_a.md"]
    if damage in ("vector missing", "vector not finite", "vector too short"):
        assert near(store, EAST) == ["f2"]
        embed(store, "f1", EAST)  # what lost its vector waits for a new one
    assert (near(store, EAST, k=1), near(store, NORTH, k=1)) == (["f1"], ["f2"])
    store.save([fact("f3", "blue dial")])
    store.delete(["f2"])
    assert store.check() == ()


def test_case_35_a_changed_text_is_named_and_kept(sqlite: Open) -> None:
    store = filled(sqlite)
    with raw(store) as db:
        db.execute("UPDATE passage SET body = 'grim lever' WHERE body = 'green lever'")
    assert store.check() == ("the text of passage 1 is not what was stored",)
    assert store.repair().left == ("the text of passage 1 is not what was stored",)


def test_case_35_an_orphan_passage_is_named(sqlite: Open) -> None:
    store = filled(sqlite)
    with raw(store) as db:
        db.execute("UPDATE passage SET item = 99 WHERE body = 'bravo'")
    assert store.check() == ("row 4 of passage belongs to no row of item",)


def problems(sqlite: Open) -> tuple[str, ...]:
    try:
        with closing(sqlite()) as damaged:
            return tuple(damaged.check())
    except StoreDamaged as error:
        return (error.message,)


def test_case_35_a_random_page_is_found_and_never_taken_for_sound(sqlite: Open) -> None:
    store = sqlite()
    store.save([doc(f"{n}.md", f"text {n} " * 300) for n in range(60)])
    store.close()
    whole = store.path.read_bytes()
    for page in range(1, len(whole) // 8192, 7):
        store.path.write_bytes(whole[: page * 8192] + random.Random(page).randbytes(8192) + whole[(page + 1) * 8192 :])
        assert problems(sqlite), page


def test_a_sound_store_is_rebuilt_without_keeping_a_copy(sqlite: Open) -> None:
    store = filled(sqlite)
    before = store.lexical(["lever", "knob"], EVERYTHING, 5), store.nearest(EAST, EVERYTHING, 5)
    assert store.repair().kept is None
    assert (store.lexical(["lever", "knob"], EVERYTHING, 5), store.nearest(EAST, EVERYTHING, 5)) == before


def test_text_that_another_analyzer_indexed_is_reported_and_indexed_again_by_repair(sqlite: Open, path: Path) -> None:
    filled(sqlite).close()
    exact = Analyzer(AnalyzerOptions(stemming=False))
    store = SqliteStore(path, exact)
    store.save([fact("f9", "levers")])
    (warning,) = store.info().warnings
    assert "doctor --repair" in warning
    assert warning in store.check()
    report = store.repair()
    assert (report.found, report.left, report.kept) == ((warning,), (), None)
    assert (store.info().warnings, store.check()) == ((), ())
    assert len(store.lexical(exact.query("lever"), EVERYTHING, 5)) == 1
    store.close()


OLDER_ROWS = """
INSERT INTO bucket (id, scope, kind) VALUES (1, 'global', 'fact');
INSERT INTO item (num, id, bucket, title, body, state, origin, pinned, created_at, updated_at, content_hash, attrs,
    passages, size) VALUES (1, 'f1', 1, '', 'see KB-4156', 'active', 'stated', 0, 1.0, 1.0, '', '{}', 1, 11);
INSERT INTO passage (item, bucket, seq, digest, heading, body, tokens) VALUES (1, 1, 0, x'00', '', 'see KB-4156', 'see')
"""


def test_r5_what_was_stored_before_there_were_entities_is_reported_and_read_by_repair(sqlite: Open) -> None:
    store = sqlite(migrations=shipped()[:2])
    store.close()
    with raw(store) as db:
        db.execute(OLDER_ROWS)
        db.execute("UPDATE passage SET digest = ?", (passage_digest("", "", "see KB-4156"),))
    store = sqlite()
    store.save([fact("f2", "and KB-4156")])
    entity = entity_id("kb-4156")
    assert len(store.mentions([entity], EVERYTHING, 5)[entity]) == 1
    (warning,) = store.info().warnings
    assert "graph search" in warning
    assert "doctor --repair" in warning
    assert store.check() == (warning,)
    assert (store.repair().left, store.info().warnings) == ((), ())
    assert len(store.mentions([entity], EVERYTHING, 5)[entity]) == 2


def test_a_new_store_has_nothing_to_read_again(sqlite: Open) -> None:
    assert filled(sqlite).info().warnings == ()


# --- deleting for good ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reader", "repaired"), [(False, False), (True, False), (False, True)])
def test_t42_case_61_no_byte_of_a_deleted_text_stays_in_the_files(
    sqlite: Open, path: Path, reader: bool, repaired: bool
) -> None:
    store = filled(sqlite)
    if repaired:
        store.repair()
    secret = random_unit(random.Random(1), 4)
    store.save([fact("gone", "Zanzibar quokkaphone " * 50, key="k"), doc("gone.md", "more of Zanzibar quokkaphone")])
    embed(store, "gone", secret)
    store.save([fact("next", "harmless", key="k")])  # superseded text is kept, and deleted with its item
    other = sqlite() if reader else None
    if other:
        assert found(other, "quokkaphone") == ["doc_gone.md"]
    assert store.delete(["gone", "doc_gone.md"]) == 2
    left = b"".join(each.read_bytes() for each in path.parent.iterdir())
    for trace in (b"quokkaphone", b"Quokka", b"zanzibar", b"Zanzibar", bytes(secret)):
        assert trace not in left, trace
    assert b"harmless" in left


def test_case_61_a_reader_that_keeps_deleted_text_in_the_log_is_reported_until_it_is_gone(
    sqlite: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grounded_mcp.stores.sqlite.SCRUB_SECONDS", 0.05)
    store = filled(sqlite)
    store.save([fact("gone", "quokkaphone"), fact("too", "wombat")])
    with raw(store) as db:
        db.execute("BEGIN; SELECT * FROM item")
        store.delete(["gone"])
        (warning,) = store.info().warnings
        assert "Deleted text" in warning
        db.execute("COMMIT")
    store.delete(["too"])
    assert store.info().warnings == ()
    assert b"quokkaphone" not in b"".join(each.read_bytes() for each in store.path.parent.iterdir())


# --- backups and size -------------------------------------------------------------------------------------


def test_case_38_a_backup_is_one_sound_file_and_opens_as_a_store(sqlite: Open, tmp_path: Path) -> None:
    store = filled(sqlite)
    target = tmp_path / "elsewhere" / "copy.db"
    target.parent.mkdir()
    store.backup(target)
    store.save([fact("later", "not in it")])
    assert [each.name for each in target.parent.iterdir()] == ["copy.db"]
    copy = sqlite(target)
    assert copy.check() == ()
    assert (found(copy, "green lever"), near(copy, NORTH, k=1), found(copy, "later")) == (["f1"], ["f2"], [])


def test_a_backup_never_replaces_a_file(sqlite: Open, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match="exists already"):
        filled(sqlite).backup(target)
    assert target.read_text(encoding="utf-8") == "mine"
    assert not list(tmp_path.glob(".precious*"))


def test_case_43_three_hundred_projects_stay_small_and_fast_to_search(sqlite: Open) -> None:
    store, source, space = sqlite(), random.Random(43), Space("model-b", 384)
    for project in range(300):
        store.save([fact(f"p{project}-{n}", f"memory {n} of the lever", f"project:p{project}") for n in range(5)])
    while waiting := store.pending(100):
        store.set_vectors(space, {passage.id: random_unit(source, 384) for passage in waiting})
    times = []
    for _ in range(20):
        started = time.perf_counter()
        assert len(store.lexical(["memory", "lever"], EVERYTHING, 30)) == 30
        assert len(store.nearest(random_unit(source, 384), EVERYTHING, 30)) == 30
        times.append(time.perf_counter() - started)
    assert sorted(times)[-2] < 0.15
    store.close()
    assert store.path.stat().st_size < 12_000_000
    assert len(KINDS) == 7


def test_case_43_indexing_again_and_again_does_not_grow_the_file(sqlite: Open) -> None:
    store = sqlite()

    def round_(number: int) -> int:
        for start in range(0, 400, 100):
            store.save([doc(f"{n}.md", f"round {number} of document {n} " * 40) for n in range(start, start + 100)])
        store.maintain()
        return int(store.path.stat().st_size)

    first = round_(0)
    assert [round_(number) <= 2 * first for number in range(1, 7)] == [True] * 6
    assert store.check() == ()


def test_case_27_a_read_that_is_held_open_is_ended_before_the_log_fills_the_disk(sqlite: Open, path: Path) -> None:
    store, log = sqlite(), Path(f"{path}-wal")
    store.save([fact("first", "note")])
    writes = iter(range(3_000))

    def write(most: int) -> None:
        for number in itertools.islice(writes, most):
            store.save([fact(f"f{number}", f"note {number} of the build")])

    def others(most: int) -> None:
        thread = threading.Thread(target=write, args=(most,))
        thread.start()
        thread.join()

    def read_slowly() -> None:
        with store.reading():
            while True:
                assert store.ids(limit=9) == ("first",)
                others(100)
                assert log.stat().st_size < 2 * MAX_LOG

    with pytest.raises(StoreBusy, match="the reading was ended"):
        read_slowly()
    others(3_000)
    assert next(writes, None) is None
    assert log.stat().st_size <= 16 * 2**20
    with store.reading():
        assert len(store.ids(limit=9_999)) == 3_001


def test_case_27_a_read_is_not_ended_for_a_log_that_was_long_before(sqlite: Open, path: Path) -> None:
    store, held, log = sqlite(), sqlite(), Path(f"{path}-wal")
    store.save([fact("first", "note")])
    with held.reading():
        held.ids(limit=1)
        for number in itertools.count():
            store.save([fact(f"f{number}", f"note {number} of the build")])
            if log.stat().st_size > MAX_LOG:
                break
        with store.reading():
            seen = store.ids(limit=9_999)
            store.save([fact("more", "note")])
            assert store.ids(limit=9_999) == seen


def test_case_27_the_log_stays_short_under_many_writes(sqlite: Open, path: Path) -> None:
    store, log, longest = sqlite(), Path(f"{path}-wal"), 0
    for number in range(400):
        store.save([fact(f"f{number}", f"note {number}")])
        store.lexical(["note"], EVERYTHING, 5)
        longest = max(longest, log.stat().st_size)
    assert longest <= 16 * 1024 * 1024
