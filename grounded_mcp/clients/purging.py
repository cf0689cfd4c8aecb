"""Deleting the data directory: what is ours in it, and nothing else.

A user may have named any folder as the data directory, so that files are deleted by name, and the folder only once
it is empty. Knows nothing about clients.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import escape
from pathlib import Path

from grounded_mcp.errors import ClientError

OURS = ("config.toml", "models", "clients", "eval-vectors*", "hooks*", "pending*")
"""What this program puts into its data directory beside the store."""

_STORE = ("{}", "{}-wal", "{}-shm", "{}-journal", "{}.backup-*", "{}.corrupt-*", ".{}.*.new")
"""A store's files: its own, what migrations and repairs set aside, and drafts whose making was cut short."""


@dataclass(frozen=True, slots=True)
class Purge:
    """What is to be deleted, and what is there besides and stays."""

    home: Path
    ours: tuple[Path, ...]
    others: tuple[Path, ...]


def plan(home: Path, store: str) -> Purge:
    """What deleting means for a data directory, and for a store file that lies elsewhere. A server's store stays."""
    inside = sorted(home.iterdir()) if home.is_dir() else []
    ours = {each for each in inside if any(fnmatch(each.name, pattern) for pattern in OURS)}
    stores = {home / "memory.db"} | (set() if "://" in store else {Path(store).expanduser()})
    ours.update(found for each in stores for found in _store_files(each))
    return Purge(home, tuple(sorted(ours)), tuple(each for each in inside if each not in ours))


def purge(planned: Purge) -> None:
    """Delete what is ours; the folder too, unless something else is in it. Raises: ClientError."""
    try:
        for each in planned.ours:
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink(missing_ok=True)
        if planned.home.is_dir() and not any(planned.home.iterdir()):
            target = planned.home.resolve()
            if planned.home.is_symlink():
                planned.home.unlink()
            target.rmdir()
    except OSError as error:
        raise ClientError(f"{error.filename} cannot be deleted: {error}.", "Stop what uses it and repeat.") from error


def _store_files(store: Path) -> Iterator[Path]:
    for pattern in _STORE if store.parent.is_dir() else ():
        yield from store.parent.glob(pattern.format(escape(store.name)))
