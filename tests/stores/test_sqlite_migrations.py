"""Schema changes: after a backup, in one step, resumable - shown with versions that only these tests know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from storing import doc, embed, fact, found, near, unit

from grounded_mcp.errors import StoreDamaged, StoreError
from grounded_mcp.stores import sqlite_schema
from grounded_mcp.stores.sqlite_connection import connect
from grounded_mcp.stores.sqlite_schema import BACKUPS_KEPT, Migration, shipped

Open = Callable[..., Any]

LATEST = shipped()[-1].number
NEWER = Migration(
    LATEST + 1,
    "mood",
    """
    ALTER TABLE item ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
    CREATE TABLE mood_log (item INTEGER NOT NULL, mood TEXT NOT NULL);
    INSERT INTO mood_log SELECT num, mood FROM item;
    CREATE INDEX mood_log_item ON mood_log (item);
    UPDATE item SET mood = 'happy' WHERE pinned;
    """,
)
NEXT = (*shipped(), NEWER)


def older(sqlite: Open) -> Path:
    """Rows, vectors, an orphan passage and a column that no version of ours made, in the shipped schema (T13)."""
    store = sqlite()
    store.save([fact(f"f{n}", f"lever number {n}", pinned=n == 1) for n in range(5)] + [doc("a.md", "alpha", "bravo")])
    embed(store, "f1", unit(1, 0, 0, 0))
    store.close()
    with closing(connect(store.path)) as db:
        db.execute("PRAGMA foreign_keys = OFF; ALTER TABLE item ADD COLUMN extra TEXT")
        db.execute("UPDATE passage SET item = 999 WHERE body = 'bravo'")
    return Path(store.path)


def contents(path: Path) -> dict[str, list[Any]]:
    with closing(apsw.Connection(str(path))) as db:
        return {
            "item": list(db.execute("SELECT id, title, body, state, pinned FROM item ORDER BY num")),
            "passage": list(db.execute("SELECT id, item, body, tokens, vector_state FROM passage ORDER BY id")),
            "vector": list(db.execute("SELECT passage, embedding FROM vector ORDER BY passage")),
        }


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"memory.db.backup-v{LATEST}-*"))


def test_t13_an_older_store_is_backed_up_and_migrated_and_its_orphan_reported(sqlite: Open) -> None:
    path = older(sqlite)
    before = contents(path)
    store = sqlite(migrations=NEXT)
    assert store.info().schema == LATEST + 1
    assert store.info().warnings == ("1 rows of passage belong to nothing; they were kept.",)
    assert contents(path) == before
    assert sorted(found(store, "lever")) == [f"f{n}" for n in range(5)]
    assert near(store, unit(1, 0, 0, 0)) == ["f1"]
    (backup,) = backups(path)
    assert contents(backup) == before
    store.close()
    with closing(apsw.Connection(str(path))) as db:
        assert list(db.execute("SELECT DISTINCT mood FROM item ORDER BY 1")) == [("calm",), ("happy",)]
    with closing(apsw.Connection(str(backup))) as db:
        assert (db.pragma("user_version"), db.pragma("integrity_check")) == (LATEST, "ok")


def test_a_store_of_this_version_is_neither_backed_up_nor_changed(sqlite: Open, path: Path) -> None:
    sqlite().close()
    before = path.read_bytes()
    sqlite().close()
    assert (path.read_bytes(), backups(path)) == (before, [])


@contextmanager
def killed_at(statement: int) -> Iterator[None]:
    """As if the process ended before the n-th statement of a migration's transaction: nothing of it is committed."""
    counted = 0

    def trace(cursor: apsw.Cursor, sql: str, _: object) -> bool:
        nonlocal counted
        counted += cursor.connection.in_transaction
        if counted == statement:
            raise KeyboardInterrupt
        return True

    def hook(db: apsw.Connection) -> None:
        db.exec_trace = trace

    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


def test_case_31_a_migration_that_is_interrupted_anywhere_runs_again_at_the_next_start(sqlite: Open) -> None:
    path = older(sqlite)
    before, interrupted = contents(path), 0
    while True:
        try:
            with killed_at(interrupted + 1):
                sqlite(migrations=NEXT)
            break
        except KeyboardInterrupt:
            interrupted += 1
        assert contents(path) == before
        with closing(apsw.Connection(str(path))) as db:
            assert db.pragma("user_version") == LATEST
    assert interrupted > 8
    assert contents(path) == before
    assert 1 <= len(backups(path)) <= BACKUPS_KEPT + interrupted
    assert sqlite(migrations=NEXT).info().schema == LATEST + 1


def test_a_migration_that_fails_leaves_the_store_and_its_backup(sqlite: Open) -> None:
    path = older(sqlite)
    before = contents(path)
    broken = replace(NEWER, script=f"{NEWER.script} SELECT * FROM nowhere;")  # noqa: S608
    with pytest.raises(StoreError, match="nowhere"):
        sqlite(migrations=(*shipped(), broken))
    assert contents(path) == before
    assert [contents(backup) for backup in backups(path)] == [before]


def test_backups_of_a_migration_that_keeps_failing_do_not_pile_up(sqlite: Open) -> None:
    path = older(sqlite)
    broken = replace(NEWER, script="INSERT INTO nowhere VALUES (1);")
    for _ in range(BACKUPS_KEPT + 3):
        with pytest.raises(StoreError):
            sqlite(migrations=(*shipped(), broken))
    assert len(backups(path)) == BACKUPS_KEPT


def test_a_damaged_store_is_not_migrated(sqlite: Open) -> None:
    path = older(sqlite)
    with path.open("r+b") as file:
        file.seek(5 * 8192)
        file.write(b"\xff" * 8192)
    with pytest.raises(StoreDamaged):
        sqlite(migrations=NEXT)
    assert backups(path) == []


def test_two_processes_that_migrate_at_once_do_it_once(sqlite: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    path = older(sqlite)
    upgrade = sqlite_schema._upgrade

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(sqlite_schema, "_upgrade", upgrade)
        sqlite(migrations=NEXT)  # the other process, between this one's look at the version and its turn
        return upgrade(*arguments)

    monkeypatch.setattr(sqlite_schema, "_upgrade", late)
    assert sqlite(migrations=NEXT).info().schema == LATEST + 1
    assert len(list(path.parent.glob("*.backup-*"))) == 1


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in shipped()] == list(range(1, len(shipped()) + 1))
