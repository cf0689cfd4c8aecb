"""What another application keeps in an SQLite file, read without leaving a trace there.

Nothing is written, checkpointed or deleted, only the named tables are read, and a file beside the database is made in
one case only (see ``_ways``). Knows SQLite's ways of opening a file, and no agent's tables.

The standard library's ``sqlite3`` does this and not the store's driver: reading needs no extension and no newer
engine, and what the store demands of its one connection has no meaning for a file that is somebody else's.
"""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from grounded_mcp.ingest.transcripts.lines import MAX_LINE_BYTES, open_plain

MAX_VALUE = MAX_LINE_BYTES
"""Characters of a stored value; longer ones hold files or images, as with JSON lines."""
BUSY_SECONDS = 1.0
"""How long to wait for an application that is writing; longer would hold up everything else that is to be read."""

_MAGIC = b"SQLite format 3\0"
_WAL = b"\2\2"
"""Bytes 18 and 19 of a database in WAL mode (sqlite.org/fileformat2.html)."""
_LOCKED, _SHARED, _STILL = "mode=ro", "mode=ro&readonly_shm=1", "mode=ro&immutable=1"
_HARMLESS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION))


class Rows(Protocol):
    """Runs a query and yields its rows. Raises: OSError."""

    def __call__(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]: ...


@contextmanager
def opened(path: Path, tables: Collection[str]) -> Iterator[Rows]:
    """A foreign database, of which ``tables`` can be read and nothing else: SQLite itself refuses the rest.

    What is seen is one state of a database in WAL mode; in other modes one query sees one state, and holds up a
    writer until its rows are read. Texts that are not UTF-8 are mended.
    Raises: OSError, here and from the queries: no database, locked, damaged, without a table or a column that is
    asked for, or changed while it was read in a way that needs a fresh start.
    """
    wal, ways = _ways(path)
    connection, way = _connected(path, ways)
    with closing(connection):
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        if wal:
            connection.execute("BEGIN")
        connection.set_authorizer(_fence(tables))
        yield _rows(connection, path, watched=way == _STILL)


def _ways(path: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether the database is in WAL mode, and how to open it, first choice first.

    SQLite's own read-only mode makes ``-wal`` and ``-shm`` where they are missing, and rewrites ``-shm`` where no one
    else has it open. So a database that lies still (nothing in a log) is read as immutable, and watched; one whose two
    files exist is read with ``readonly_shm`` (os_unix.c, os_win.c), which shares them and writes neither. Only a log
    without its ``-shm``, as in a copy, makes SQLite build one; where the folder does not allow that, the log is left
    out.
    """
    with open_plain(path) as file:
        header = file.read(20)
    if not header.startswith(_MAGIC):
        raise OSError(f"{path.name} is not an SQLite database")
    if header[18:20] != _WAL:
        return False, (_LOCKED,)
    log, shared = _size(path, "-wal"), _size(path, "-shm")
    if log is not None and shared is not None:
        return True, (_SHARED,)
    return True, ((_LOCKED, _STILL) if log else (_STILL,))


def _connected(path: Path, ways: Collection[str]) -> tuple[sqlite3.Connection, str]:
    failure: sqlite3.Error | None = None
    for way in ways:
        uri = f"{path.absolute().as_uri()}?{way}"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            failure = error
            continue
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            connection.close()
            failure = error
        else:
            return connection, way
    raise OSError(f"{path.name}: {failure}") from failure


def _fence(tables: Collection[str]) -> Callable[..., int]:
    def allow(action: int, table: str | None, *_: str | None) -> int:
        fine = table in tables if action == sqlite3.SQLITE_READ else action in _HARMLESS
        return sqlite3.SQLITE_OK if fine else sqlite3.SQLITE_DENY

    return allow


def _rows(connection: sqlite3.Connection, path: Path, watched: bool) -> Rows:
    # An immutable database is read without locks: that nobody wrote meanwhile is checked, not prevented.
    before = _state(path) if watched else None

    def rows(sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        try:
            yield from connection.execute(sql, values)
        except sqlite3.Error as error:
            raise OSError(f"{path.name}: {error}") from error
        if watched and _state(path) != before:
            raise OSError(f"{path.name} was changed while it was read")

    return rows


def _state(path: Path) -> tuple[int, int, int]:
    """What changes when a database is written: its size, its time, and the size of its log."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, _size(path, "-wal") or 0


def _size(path: Path, suffix: str) -> int | None:
    """Bytes of a file beside the database; None if there is no such plain file."""
    try:
        found = path.with_name(path.name + suffix).lstat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def parsed(value: object) -> dict[str, Any]:
    """The object in a value, which may be JSON as text or bytes; empty for everything else."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def words(value: object) -> str:
    """A text that is not blank, as it is; empty for everything else."""
    return value if isinstance(value, str) and value.strip() else ""
