"""Opening a store: make it, recognise it, bring its schema up to date - after a backup - or refuse it.

A store becomes visible under its name only when it is complete, so that no process ever meets half of one.
Knows nothing about what the tables hold.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

import apsw

from grounded_mcp import __version__
from grounded_mcp.errors import StoreDamaged, StoreError
from grounded_mcp.stores import sqlite_errors as errors
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.schema import Migration
from grounded_mcp.stores.sqlite_connection import Access, Database, connect, connect_bare, transaction
from grounded_mcp.stores.sqlite_files import (
    has_pending_log,
    identity,
    is_network,
    make_private_folder,
    private_draft,
    publish,
    tighten,
)

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x47724D63
"""``GrMc`` in the file's header: tells our stores from any other SQLite file."""

PAGE_SIZE = 8192
"""Five vectors of 384 dimensions fit a page, two fit one of 4096: a fifth less disk, and a faster sweep."""

BACKUPS_KEPT = 3
"""Backups of one schema version that are kept: a migration that fails at every start must not fill the disk."""


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, from ``migrations/sqlite/NNNN_name.sql``."""
    folder = files("grounded_mcp.stores") / "migrations" / "sqlite"
    scripts = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return tuple(
        Migration(int(each.name[:4]), each.name[5:].removesuffix(".sql"), each.read_text(encoding="utf-8"))
        for each in scripts
    )


def open_database(
    path: Path,
    options: StoreOptions,
    migrations: Sequence[Migration],
    *,
    create: bool,
    filesystem: Callable[[Path], str],
) -> tuple[Database, tuple[str, ...]]:
    """The store at ``path``, of the newest schema, and what a person should know about it.

    Raises: StoreForeign, StoreDamaged, StoreNewer, StoreReadOnly, StoreFull, StoreBusy; StoreError when there is
    no store and ``create`` is false. A file that is refused is left as it was.
    """
    path = path.expanduser().resolve()
    network = _network_warning(path, filesystem)
    with errors.translated(path):
        if not path.exists():
            if not create:
                raise errors.missing(path)
            _create(path, migrations, log=not network)
        found = identity(path)
        access, version = _probe(path, migrations)
        latest = migrations[-1].number
        warnings = (*network, *tighten(path))
        if access == "write":
            warnings += _bring_up_to_date(path, version, migrations, log=not network)
        elif version < latest:
            raise errors.read_only(path, f"its schema {version} has to be migrated first")
        else:
            warnings += (f"{path} or its folder is read-only: nothing can be remembered.",)
    if found is None:
        raise errors.moved(path)
    return Database(path, options, access, found, latest, durable=bool(network)), warnings


def _network_warning(path: Path, filesystem: Callable[[Path], str]) -> tuple[str, ...]:
    kind = filesystem(path)
    if not is_network(kind):
        return ()
    warning = (
        f"{path} is on a network file system ({kind}): it is used without a write-ahead log, slower, and locks may "
        "not hold between machines. A local path for GROUNDED_STORE is safer."
    )
    logger.warning(warning)
    return (warning,)


def _create(path: Path, migrations: Sequence[Migration], *, log: bool) -> None:
    """A complete empty store appears under ``path``, unless another process's did first (case 21)."""
    make_private_folder(path.parent)
    with private_draft(path) as draft:
        with closing(connect(draft)) as db:
            db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            with transaction(db, "BEGIN IMMEDIATE"):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                _apply(db, migrations)
            db.execute(f"PRAGMA journal_mode = {'WAL' if log else 'DELETE'}")
        publish(draft, path)


def _apply(db: apsw.Connection, migrations: Sequence[Migration]) -> None:
    for migration in migrations:
        db.execute(migration.script)
        db.execute(f"PRAGMA user_version = {migration.number}")
    db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('written_by', ?)", (__version__,))


def _probe(path: Path, migrations: Sequence[Migration]) -> tuple[Access, int]:
    """How a file can be used, and its schema version. Raises: StoreForeign, StoreNewer, StoreReadOnly.

    To read a file with a log, even an empty one, SQLite has to write beside it (engine-facts 4d).
    """
    if path.is_dir():
        raise errors.foreign(path, "a folder")
    if path.stat().st_size == 0:
        raise errors.foreign(path, "an empty file")
    pending = has_pending_log(path)
    with closing(connect_bare(path)) as db:
        if pending:  # closing must not write the log into a file that is about to be refused (case 28)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with suppress(apsw.ReadOnlyError, apsw.CantOpenError):
            if not db.readonly("main"):
                return "write", _recognise(db, path, migrations)
    access: Access = "read" if pending else "frozen"
    try:
        with closing(connect(path, access)) as db:
            return access, _recognise(db, path, migrations)
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise errors.unreadable(path) from error


def _recognise(db: apsw.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    if db.pragma("application_id") != APPLICATION_ID:
        raise errors.foreign(path, "a SQLite database of something else")
    version = int(db.pragma("user_version"))
    if version > migrations[-1].number:
        raise errors.newer(path, version, migrations[-1].number, _writer(db))
    return version


def _writer(db: apsw.Connection) -> str | None:
    try:
        row = db.execute("SELECT value FROM meta WHERE name = 'written_by'").fetchone()
    except apsw.Error:
        return None
    return str(row[0]) if row else None


def _bring_up_to_date(path: Path, version: int, migrations: Sequence[Migration], *, log: bool) -> tuple[str, ...]:
    with closing(connect(path, durable=not log)) as db:
        _set_journal(db, log=log)
        return _upgrade(db, path, migrations) if version < migrations[-1].number else ()


def _set_journal(db: apsw.Connection, *, log: bool) -> None:
    """The file remembers its journal mode; it is changed only where it is not what the file system allows."""
    if log:
        if db.pragma("journal_mode") != "wal":
            db.execute("PRAGMA journal_mode = WAL")
        return
    # In exclusive mode a log is read without the shared memory that a network file system does not have.
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA locking_mode = NORMAL")
    db.execute("SELECT count(*) FROM sqlite_schema").fetchall()


# --- migrations and backups -------------------------------------------------------------------------------


def _upgrade(db: apsw.Connection, path: Path, migrations: Sequence[Migration]) -> tuple[str, ...]:
    """Apply what is missing in one transaction: interrupted anywhere, the store is as it was before (case 31)."""
    db.execute("PRAGMA foreign_keys = OFF")  # a step may rebuild a table that others refer to
    with transaction(db, "BEGIN IMMEDIATE"):
        version = int(db.pragma("user_version"))
        missing = [migration for migration in migrations if migration.number > version]
        if not missing:  # another process did it while this one waited for its turn
            return ()
        backup = path.with_name(f"{path.name}.backup-v{version}-{timestamp()}")
        copy_database(path, backup)
        _prune(path, version)
        _apply(db, missing)
        orphans = list(db.execute("PRAGMA foreign_key_check"))
    logger.warning("%s was migrated from schema %s to %s; backup: %s", path, version, migrations[-1].number, backup)
    tables = ", ".join(sorted({str(row[0]) for row in orphans}))
    return (f"{len(orphans)} rows of {tables} belong to nothing; they were kept.",) if orphans else ()


def _quick_check(db: apsw.Connection) -> Sequence[str]:
    fault = str(db.pragma("quick_check"))
    return () if fault == "ok" else (fault,)


def copy_database(
    path: Path, target: Path, *, sound: bool = True, oracle: Callable[[apsw.Connection], Sequence[str]] = _quick_check
) -> None:
    """A consistent copy of the store in one file, made by SQLite's backup API, private to this user.

    ``oracle`` says what is wrong with a copy that has to be sound. Raises: StoreError when ``target`` exists;
    StoreDamaged for a copy that is not sound.
    """
    with private_draft(target) as draft:
        with closing(connect(path)) as source, closing(connect_bare(draft)) as copy:
            with copy.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(-1)
            if sound and (faults := oracle(copy)):
                raise StoreDamaged(f"The copy of {path} is not sound: {'; '.join(faults)}.", errors.REPAIR)
            if sound:
                copy.execute("PRAGMA journal_mode = DELETE")  # so that the copy needs no log beside it
        if not publish(draft, target):
            raise StoreError(f"{target} exists already.", "Name another file.")


def _prune(path: Path, version: int) -> None:
    kept = sorted(path.parent.glob(f"{path.name}.backup-v{version}-*"))
    for each in kept[:-BACKUPS_KEPT]:
        each.unlink(missing_ok=True)


def timestamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def fresh_schema(migrations: Sequence[Migration]) -> dict[str, str]:
    """The SQL of every table, index, view and trigger that a new store has, by name, in order of creation."""
    with closing(apsw.Connection(":memory:")) as db:
        _apply(db, migrations)
        rows = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
        return {str(name): str(sql) for name, sql in rows}
