"""Opening a store: make its schema, recognise it, bring it up to date, or refuse it.

Everything happens in one transaction under a lock that every process takes first, so that nobody ever meets half of a
schema. Knows nothing about what the tables hold.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from importlib.resources import files
from zlib import crc32

import psycopg

from grounded_mcp import __version__
from grounded_mcp.stores import postgres_errors as errors
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.postgres_connection import Connection, Database, connect, place_of, rows, run, several
from grounded_mcp.stores.schema import Migration

logger = logging.getLogger(__name__)

APPLICATION = "grounded-memory-mcp"
"""What ``meta`` says under ``application``: tells our schemas from any other."""

LOCK = 0x47724D63
"""The class of our advisory locks: ``GrMc``, as in the header of a SQLite store."""

OLDEST_SERVER, OLDEST_PGVECTOR = 150000, (0, 8)
"""Postgres 15; pgvector 0.8 goes on searching its index where a filter leaves too few (iterative scans)."""


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, from ``migrations/postgres/NNNN_name.sql``; numbered as those of SQLite are."""
    folder = files("grounded_mcp.stores") / "migrations" / "postgres"
    scripts = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return tuple(
        Migration(int(each.name[:4]), each.name[5:].removesuffix(".sql"), each.read_text(encoding="utf-8"))
        for each in scripts
    )


def open_database(url: str, options: StoreOptions, migrations: Sequence[Migration], *, create: bool) -> Database:
    """The store in a schema of the database, of the newest schema version.

    Raises: StoreUnreachable, StoreForeign, StoreNewer, StoreReadOnly, StoreBusy; StoreError for a server that is too
    old, and where there is no store and ``create`` is false. What is refused is left as it was.
    """
    try:
        place = place_of(url, options.postgres.schema)
    except psycopg.ProgrammingError as error:
        raise errors.unreadable_url() from error
    with errors.translated(place), closing(connect(url, options)) as db:
        _check_server(db, place)
        several(db, f"BEGIN; SET LOCAL lock_timeout = {options.max_batch_wait_ms}")
        try:
            _bring_up_to_date(db, options.postgres.schema, place, migrations, create=create)
            several(db, "COMMIT")
        except BaseException:
            with suppress(psycopg.Error):
                several(db, "ROLLBACK")
            raise
    return Database(url, options, migrations[-1].number)


def _check_server(db: Connection, place: str) -> None:
    if db.info.server_version < OLDEST_SERVER:
        raise errors.unfit(place, f"Postgres {db.info.server_version // 10000}", "Postgres 15 or later")
    encoding = rows(db, "SELECT current_setting('server_encoding')")[0][0]
    if encoding != "UTF8":
        raise errors.unfit(place, f"a database in {encoding}", "a database in UTF8")


def _bring_up_to_date(
    db: Connection, schema: str, place: str, migrations: Sequence[Migration], *, create: bool
) -> None:
    version = _version(db, schema, place, migrations)
    if version == migrations[-1].number:
        return
    if not version and not create:
        raise errors.missing(place)
    # Whoever waited here finds that it was done; the lock is given back with the transaction.
    run(db, "SELECT pg_advisory_xact_lock(%s::integer, %s::integer)", (LOCK, crc32(schema.encode()) >> 1))
    version = _version(db, schema, place, migrations)
    if not version:
        _extension(db, place)
        several(db, f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    missing = [migration for migration in migrations if migration.number > version]
    for migration in missing:
        several(db, migration.script)
    noted = {"application": APPLICATION, "schema": str(migrations[-1].number), "written_by": __version__}
    for name, value in noted.items():
        run(
            db,
            "INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )
    if version and missing:
        logger.warning("%s was migrated from schema %s to %s", place, version, migrations[-1].number)


def _version(db: Connection, schema: str, place: str, migrations: Sequence[Migration]) -> int:
    """The schema version that is there, 0 for none. Raises: StoreForeign, StoreNewer."""
    tables = {name for (name,) in rows(db, _TABLES, (schema,))}
    if not tables:
        return 0
    noted: dict[str, str] = dict(rows(db, "SELECT name, value FROM meta")) if "meta" in tables else {}
    if noted.get("application") != APPLICATION:
        raise errors.foreign(place, "tables of something else")
    version = int(noted["schema"])
    if version > migrations[-1].number:
        raise errors.newer(place, version, migrations[-1].number, noted.get("written_by"))
    return version


_TABLES = """
SELECT relname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = %s AND relkind IN ('r', 'p', 'v')"""


def _extension(db: Connection, place: str) -> None:
    """pgvector, installed into the database if it is not there yet."""
    held = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    if not rows(db, held):
        try:
            with db.transaction():
                several(db, "CREATE EXTENSION vector WITH SCHEMA public")
        except psycopg.Error as error:
            raise errors.no_vectors(place) from error
    version = str(rows(db, held)[0][0])
    if tuple(map(int, version.split(".")[:2])) < OLDEST_PGVECTOR:
        raise errors.unfit(place, f"pgvector {version}", "pgvector 0.8 or later")
    several(
        db,
        """SELECT set_config('search_path', current_setting('search_path') || ', ' || quote_ident(nspname), false)
        FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'""",
    )
