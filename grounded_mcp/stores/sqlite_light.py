"""The SQLite store for reading one brief: opened fast, read only, never made, never migrated.

What a hook opens. A store of another schema, of another program or none at all is an error, and the file is left as
it is. Knows nothing about what is done with the answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import apsw

from grounded_mcp.errors import StoreError
from grounded_mcp.foreground import Foreground, KnownProject, Most, Note, Weights
from grounded_mcp.stores import sqlite_foreground

APPLICATION_ID = 0x47724D63
"""As in ``sqlite_schema``, which takes too long to import; a test holds them together."""
OLDEST = 5
"""The schema that brought the last table that is read here: a store need not be migrated before it is read."""
BUSY_MS = 200
"""Readers of a write-ahead log wait for nobody but a recovery or a migration."""

_PRAGMAS = ("query_only = ON", "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY")

T = TypeVar("T")


def newest() -> int:
    """The schema that this version makes: the number of its last migration. Raises: OSError."""
    folder = os.path.join(os.path.dirname(__file__), "migrations", "sqlite")  # noqa: PTH118, PTH120
    return max(int(name[:4]) for name in os.listdir(folder) if name.endswith(".sql"))  # noqa: PTH208


class LightStore:
    """``foreground.LightShelf`` over one SQLite file; one thread, one snapshot, until ``close``."""

    def __init__(self, path: str) -> None:
        self._path = path
        if not os.path.isfile(path):  # noqa: PTH113 - pathlib is not imported here
            raise StoreError(f"There is no store at {path}.", "`grounded-mcp sync` makes one.")
        self._db = self._ask(lambda: apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY))
        try:
            self._ask(self._begun)
        except StoreError:
            self._db.close()
            raise

    def _begun(self) -> None:
        """Begin; where the folder cannot be written, read the file as it is, unless a log is pending (case 33)."""
        try:
            self._begin()
        except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
            from pathlib import Path  # not imported where nothing is wrong

            from grounded_mcp.stores.sqlite_errors import unreadable
            from grounded_mcp.stores.sqlite_files import has_pending_log

            path = Path(self._path).absolute()
            if has_pending_log(path):
                raise unreadable(path) from error
            self._db.close()
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            self._db = apsw.Connection(f"{path.as_uri()}?mode=ro&immutable=1", flags=flags)
            self._begin()

    def _begin(self) -> None:
        self._db.set_busy_timeout(BUSY_MS)
        self._db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        self._db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        for pragma in _PRAGMAS:
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("BEGIN")
        ours = self._db.pragma("application_id") == APPLICATION_ID
        if not ours or not OLDEST <= self._db.pragma("user_version") <= newest():
            raise StoreError(f"{self._path} is not a store of this version.", "Run `grounded-mcp doctor`.")

    def scopes(self) -> frozenset[str]:
        statement = "SELECT scope FROM bucket WHERE EXISTS (SELECT 1 FROM item WHERE item.bucket = bucket.id)"
        return frozenset(row[0] for row in self._rows(statement))

    def projects(self) -> tuple[KnownProject, ...]:
        return tuple(KnownProject(*row) for row in self._rows("SELECT key, name FROM project ORDER BY key"))

    def foreground(self, facts: Collection[str], others: Collection[str], most: Most, weights: Weights) -> Foreground:
        return self._ask(lambda: sqlite_foreground.foreground(self._db, facts, others, most, weights))

    def naming(
        self, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
    ) -> tuple[Note, ...]:
        return self._ask(lambda: sqlite_foreground.naming(self._db, entities, facts, others, common, k))

    def secret(self, name: str) -> bytes | None:
        return next((bytes(row[0]) for row in self._rows("SELECT value FROM secret WHERE name = ?", (name,))), None)

    def close(self) -> None:
        self._db.close()

    def _rows(self, statement: str, bindings: tuple[str, ...] = ()) -> list[Any]:
        return self._ask(lambda: list(self._db.execute(statement, bindings)))

    def _ask(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except apsw.Error as error:
            raise StoreError(f"{self._path} cannot be read: {error}.", "Run `grounded-mcp doctor`.") from error
