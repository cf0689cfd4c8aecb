"""What SQLite's and the system's errors mean to a caller: one table from exceptions to our error tree.

Knows nothing about what was being done when they were raised.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from grounded_mcp.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreMoved,
    StoreNewer,
    StoreReadOnly,
    StoreStopped,
)

RESTORE = "Restore a copy of it, or move it away and run `grounded-mcp sync`: documents come back, stated facts do not."
REPAIR = f"Run `grounded-mcp doctor --repair`. If that does not help: {RESTORE[0].lower()}{RESTORE[1:]}"

# The first row that fits decides; {path} and {error} are filled in.
_MEANING: tuple[tuple[tuple[type[Exception], ...], type[StoreError], str, str], ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        StoreBusy,
        "Another process holds the store {path}; nothing was stored.",
        "Try again in a moment; if it lasts, look for a stopped or hanging process that has the file open.",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError, PermissionError),
        StoreReadOnly,
        "The store {path} cannot be written ({error}).",
        "Make the file and its folder writable for this user, or set GROUNDED_STORE to another place.",
    ),
    (
        (apsw.FullError,),
        StoreFull,
        "No space is left for the store {path}; nothing was stored.",
        "Free some disk space and try again; reading still works.",
    ),
    ((apsw.InterruptError,), StoreStopped, "The search was called off.", "Ask again if the answer is still wanted."),
    ((apsw.NotADBError,), StoreDamaged, "{path} is not a SQLite database, or its header is destroyed.", RESTORE),
    ((apsw.CorruptError,), StoreDamaged, "The store {path} is damaged ({error}).", REPAIR),
    (
        (apsw.CantOpenError,),
        StoreError,
        "The store {path} cannot be opened ({error}).",
        "Check that its folder exists and that this user may use it.",
    ),
    (
        (apsw.IOError, OSError),
        StoreError,
        "The store {path} could not be read or written ({error}).",
        "Check the disk and the system's log.",
    ),
    (
        (UnicodeEncodeError, OverflowError),
        StoreError,
        "A value cannot be stored: {error}.",
        "Clean the text of lone surrogates, and keep numbers within 64 bits.",
    ),
    ((apsw.Error,), StoreError, "SQLite refused: {error}.", REPAIR),
)


@contextmanager
def translated(path: Path, in_place: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Errors of SQLite and of the system as ``StoreError``. A file that is not ``in_place`` explains all of them."""
    try:
        yield
    except (apsw.Error, OSError, UnicodeEncodeError, OverflowError) as error:
        if isinstance(error, apsw.Error | OSError) and not in_place():
            raise moved(path) from error
        raise _meaning(error, path) from error


def _meaning(error: Exception, path: Path) -> StoreError:
    if isinstance(error, OSError) and error.errno in _SYSTEM:
        error = _SYSTEM[error.errno](str(error))
    for kinds, meaning, message, remedy in _MEANING:
        if isinstance(error, kinds):
            return meaning(message.format(path=path, error=error), remedy)
    raise error


_SYSTEM: dict[int, type[Exception]] = {
    errno.ENOSPC: apsw.FullError,
    errno.EDQUOT: apsw.FullError,
    errno.EROFS: PermissionError,
}


def outlived(path: Path) -> StoreBusy:
    return StoreBusy(
        f"So much was written to {path} while this was read that its log would fill the disk; the reading was ended.",
        "Run it again when less is being written.",
    )


def moved(path: Path) -> StoreMoved:
    return StoreMoved(
        f"The store {path} was moved, replaced or deleted while it was open; nothing was stored.",
        "Put it back, or restart to work with what is there now.",
    )


def missing(path: Path) -> StoreError:
    return StoreError(f"There is no store at {path}.", "`grounded-mcp sync` makes one.")


def read_only(path: Path, reason: str) -> StoreReadOnly:
    return StoreReadOnly(
        f"The store {path} cannot be written ({reason}); reading works.",
        "Make the file and its folder writable for this user, or set GROUNDED_STORE to another place.",
    )


def unreadable(path: Path) -> StoreReadOnly:
    return StoreReadOnly(
        f"{path}-wal holds changes that cannot be read, because the store or its folder cannot be written.",
        "Make the folder writable for this user, or let a user who may write it open the store once.",
    )


def foreign(path: Path, what: str) -> StoreForeign:
    return StoreForeign(
        f"{path} is {what}, not a store of this program; it was left untouched.",
        "Set GROUNDED_STORE to another path, restore a backup over it, or delete the file to start anew.",
    )


def newer(path: Path, found: int, known: int, writer: str | None) -> StoreNewer:
    by = f" by version {writer}" if writer else ""
    return StoreNewer(
        f"The store {path} was written{by} with schema {found}; this version reads schemas up to {known}.",
        f"Upgrade the package grounded-memory-mcp{f' to {writer} or later' if writer else ''}; the file is untouched.",
    )
