"""The Postgres store for reading one brief: one connection, when something is asked; read only, never made or migrated.

What a hook opens. A schema of another version, of another program or none at all is an error, and the server is left as
it is. Knows nothing about what is done with the answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from grounded_mcp.errors import StoreError
from grounded_mcp.foreground import Foreground, KnownProject, Most, Note, Weights
from grounded_mcp.stores import postgres_errors as errors
from grounded_mcp.stores import postgres_foreground
from grounded_mcp.stores.options import PostgresOptions, StoreOptions
from grounded_mcp.stores.postgres_connection import Connection, connect, place_of, rows, run

APPLICATION = "grounded-memory-mcp"
"""As in ``postgres_schema``, which takes longer to import; a test holds them together."""
OLDEST = 5
"""The schema that brought the last table that is read here: a store need not be migrated before it is read."""
SECONDS = 2.0
"""For the connection, and for each statement: the server is not left working for a hook that is over."""

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_MARKS = "SELECT name, value FROM meta WHERE name IN ('application', 'schema', 'written_by')"
_SCOPES = "SELECT DISTINCT scope FROM bucket WHERE EXISTS (SELECT 1 FROM item WHERE item.bucket = bucket.id)"
_PROJECTS = "SELECT key, name FROM project ORDER BY key"
_SECRET = "SELECT value FROM secret WHERE name = %s"  # noqa: S105 - a statement

T = TypeVar("T")


def newest() -> int:
    """The schema that this version makes: the number of its last migration. Raises: OSError."""
    folder = os.path.join(os.path.dirname(__file__), "migrations", "postgres")  # noqa: PTH118, PTH120
    return max(int(name[:4]) for name in os.listdir(folder) if name.endswith(".sql"))  # noqa: PTH208


class PostgresLight:
    """``foreground.LightShelf`` over one schema of a database; one thread, one snapshot, until ``close``."""

    def __init__(self, url: str, schema: str | None = None) -> None:
        given = {} if schema is None else {"schema": schema}
        seconds = {"connect_timeout_s": SECONDS, "statement_timeout_s": SECONDS}
        self._options = StoreOptions(postgres=PostgresOptions(**given, **seconds))  # type: ignore[arg-type]
        self._url = url
        self._held: Connection | None = None
        try:
            self._place = place_of(url, self._options.postgres.schema)
        except psycopg.ProgrammingError as error:
            raise errors.unreadable_url() from error

    def scopes(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._rows(_SCOPES))

    def projects(self) -> tuple[KnownProject, ...]:
        return tuple(KnownProject(*row) for row in self._rows(_PROJECTS))

    def foreground(self, facts: Collection[str], others: Collection[str], most: Most, weights: Weights) -> Foreground:
        return self._ask(lambda db: postgres_foreground.foreground(db, facts, others, most, weights))

    def naming(
        self, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
    ) -> tuple[Note, ...]:
        return self._ask(lambda db: postgres_foreground.naming(db, entities, facts, others, common, k))

    def secret(self, name: str) -> bytes | None:
        return next((bytes(row[0]) for row in self._rows(_SECRET, (name,))), None)

    def close(self) -> None:
        if self._held is not None:
            with suppress(psycopg.Error):
                self._held.close()

    def _rows(self, statement: str, given: tuple[str, ...] = ()) -> list[Any]:
        return self._ask(lambda db: rows(db, statement, given))

    def _ask(self, work: Callable[[Connection], T]) -> T:
        with errors.translated(self._place):
            if self._held is None:
                self._held = connect(self._url, self._options)
                self._begin(self._held)
            return work(self._held)

    def _begin(self, db: Connection) -> None:
        run(db, _BEGIN)
        try:
            noted = dict(rows(db, _MARKS))
        except psycopg.errors.UndefinedTable as error:
            raise errors.missing(self._place) from error
        if noted.get("application") != APPLICATION:
            raise errors.foreign(self._place, "tables of something else")
        version = int(noted["schema"])
        if version > newest():
            raise errors.newer(self._place, version, newest(), noted.get("written_by"))
        if version < OLDEST:
            raise StoreError(f"{self._place} is of an older version.", "Run `grounded-mcp doctor`.")
