"""What Postgres's and its driver's errors mean to a caller: one table from exceptions to our error tree.

A server's message may quote what it is about: only its first line is told, and of a value that does not fit only the
name of the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool
from psycopg import errors as pg

from grounded_mcp.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
    StoreStopped,
    StoreUnreachable,
)
from grounded_mcp.stopping import called_off

BACK = "Check that the server runs and can be reached; this process goes on by itself when it is back."
RESTORE = "Restore a backup of the database, or migrate to a new one what can still be read."


class Overtaken(pg.SerializationFailure):
    """Another process put in an item after this one had locked those that it knew of."""


IN_THE_WAY = (
    *(pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure),
    *(pg.UniqueViolation, pg.ForeignKeyViolation),
)
"""Another process did something else at the same moment: what is done again from the beginning can succeed."""

# The first row that fits decides; {place} and {error} are filled in.
_MEANING: tuple[tuple[tuple[type[Exception], ...], type[StoreError], str, str], ...] = (
    ((psycopg_pool.PoolClosed,), StoreError, "The store is closed.", "Open it again."),
    (
        (*IN_THE_WAY, pg.QueryCanceled, pg.TransactionTimeout),
        StoreBusy,
        "The store {place} is busy with the work of others ({error}); nothing was stored.",
        "Try again in a moment; if it lasts, look in pg_stat_activity for what holds the locks.",
    ),
    (
        (psycopg_pool.TooManyRequests, pg.TooManyConnections),
        StoreBusy,
        "The store {place} has no connection left ({error}); nothing was stored.",
        "Try again in a moment, or lower [store.postgres] pool_size where many processes share the server.",
    ),
    (
        (pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege),
        StoreReadOnly,
        "The store {place} cannot be written ({error}).",
        "Give this user the rights on the schema, or name a server that is not a standby.",
    ),
    (
        (pg.DiskFull, pg.OutOfMemory, pg.ProgramLimitExceeded),
        StoreFull,
        "The server of {place} has no room for this ({error}); nothing was stored.",
        "Free some disk space there and try again; reading still works.",
    ),
    ((pg.DataCorrupted, pg.IndexCorrupted), StoreDamaged, "The store {place} is damaged ({error}).", RESTORE),
    (
        (pg.InvalidPassword, pg.InvalidAuthorizationSpecification, pg.InvalidCatalogName),
        StoreUnreachable,
        "The server of {place} refuses the connection ({error}).",
        "Correct the user, the password or the database in GROUNDED_STORE.",
    ),
    (
        (psycopg.DataError, UnicodeEncodeError, OverflowError),
        StoreError,
        "A value cannot be stored: {error}.",
        "Clean the text of lone surrogates, and keep numbers within 64 bits.",
    ),
    (
        (psycopg.OperationalError, psycopg.InterfaceError, OSError),
        StoreUnreachable,
        "The server of {place} cannot be reached ({error}); nothing was acknowledged.",
        BACK,
    ),
    ((psycopg.Error,), StoreError, "Postgres refused: {error}.", "Run `grounded-mcp doctor`."),
)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Errors of the server, of the driver and of the system as ``StoreError``."""
    try:
        yield
    except pg.QueryCanceled as error:
        if called_off():
            raise StoreStopped("The search was called off.", "Ask again if the answer is still wanted.") from error
        raise meaning(error, place) from error
    except (psycopg.Error, OSError, UnicodeEncodeError, OverflowError) as error:
        raise meaning(error, place) from error


def meaning(error: Exception, place: str) -> StoreError:
    for kinds, kind, message, remedy in _MEANING:
        if isinstance(error, kinds):
            return kind(message.format(place=place, error=_first_line(error)), remedy)
    raise error


def _first_line(error: Exception) -> str:
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    if told and isinstance(error, psycopg.DataError):
        return type(error).__name__
    return (told or next(iter(str(error).splitlines()), "") or type(error).__name__).rstrip(".")


def lost_in_commit(place: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"The server of {place} was lost while it stored; whether it did is not known.",
        f"{BACK} Then look whether it is there before storing it again.",
    )


def no_connection(place: str, size: int) -> StoreBusy:
    return StoreBusy(
        f"All {size} connections of this process to {place} are in use; nothing was stored.",
        "Try again in a moment, or raise [store.postgres] pool_size.",
    )


def missing(place: str) -> StoreError:
    return StoreError(f"There is no store at {place}.", "`grounded-mcp sync` makes one.")


def foreign(place: str, what: str) -> StoreForeign:
    return StoreForeign(
        f"{place} holds {what}, not a store of this program; it was left untouched.",
        "Set [store.postgres] schema to another name, or GROUNDED_STORE to another database.",
    )


def newer(place: str, found: int, known: int, writer: str | None) -> StoreNewer:
    by = f" by version {writer}" if writer else ""
    return StoreNewer(
        f"The store {place} was written{by} with schema {found}; this version reads schemas up to {known}.",
        f"Upgrade the package grounded-memory-mcp{f' to {writer} or later' if writer else ''}; nothing was changed.",
    )


def no_vectors(place: str) -> StoreError:
    return StoreError(
        f"The database of {place} has no pgvector, and this user may not install it.",
        "Let an administrator install pgvector 0.8 or later and run CREATE EXTENSION vector in that database.",
    )


def unfit(place: str, what: str, needed: str) -> StoreError:
    return StoreError(f"The server of {place} has {what}.", f"Use {needed}.")


def unreadable_url() -> StoreError:
    return StoreError("The store's URL cannot be read.", "Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE.")
