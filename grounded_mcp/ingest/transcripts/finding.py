"""Where an agent's files lie: regular files of the current user under a root, links not followed, oldest first."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

MAX_DEPTH = 8


def files(root: Path, *patterns: str) -> list[Path]:
    """The files under ``root`` (or ``root`` itself) whose name matches a pattern, by time and path.

    Links, pipes, devices and other users' files are left out; a folder that cannot be read has none. The root itself
    may be reached through a link.
    """
    found = []
    for path, status in _walk(_resolved(root), MAX_DEPTH):
        if any(fnmatchcase(path.name, pattern) for pattern in patterns):
            found.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def own(status: os.stat_result) -> bool:
    """Whether a file belongs to the current user, where the platform can say."""
    getuid = getattr(os, "getuid", None)
    return getuid is None or status.st_uid == getuid()


def _resolved(root: Path) -> Path:
    try:
        return root.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return root


def _walk(path: Path, depth: int) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and own(status):
            yield path, status
        elif stat.S_ISDIR(status.st_mode) and depth:
            for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
                yield from _walk(path / entry.name, depth - 1)
    except OSError:
        return
