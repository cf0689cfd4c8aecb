"""Is a script still the one that was seen to work? Its file's sha256 then, against the file now (P3).

A file whose size and time are as at the last look is not read again. Knows nothing about evidence or ranking.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock
from collections.abc import Mapping
from typing import TYPE_CHECKING

from grounded_mcp.foreground import ELSEWHERE

if TYPE_CHECKING:
    from pathlib import Path

    from grounded_mcp.trust import ScriptState

MAX_BYTES = 1_048_576
"""A larger file is no script; it is not read, and nothing is known of it."""


class Freshness:
    """The scripts of one project. ``root``: its folder; paths are relative to it. Thread-safe."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.realpath(root)
        self._here = os.fspath(root) != ELSEWHERE
        self._seen: dict[str, tuple[tuple[int, int, int, int], str]] = {}
        self._lock = allocate_lock()

    @property
    def root(self) -> Path:
        """The folder, without links."""
        from pathlib import Path  # not at the top, for the hooks' sake

        return Path(self._root)

    def state(self, scripts: Mapping[str, str]) -> ScriptState:
        """Of all files of a command, by path and sha256 (empty: not known): the worst of them; verified for none."""
        found = {self._one(path, sha256) for path, sha256 in scripts.items()}
        order: tuple[ScriptState, ...] = ("missing", "stale", "unknown")
        return next((state for state in order if state in found), "verified")

    def _one(self, path: str, sha256: str) -> ScriptState:
        now = self.sha256(path)
        if now is None:
            return "missing"
        if not sha256 or not now:
            return "unknown"
        return "verified" if now == sha256 else "stale"

    def sha256(self, path: str) -> str | None:
        """A file's hash; empty for one that is not read, None where there is no such file in the project."""
        if not self._here:
            return ""
        try:
            status = os.stat(os.path.join(self._root, path))  # noqa: PTH116, PTH118 - pathlib takes five times as long
        except (OSError, ValueError):
            return None
        mark = (status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino)
        with self._lock:
            held = self._seen.get(path)
        if held and held[0] == mark:
            return held[1]
        made = self._read(path, status)
        if made:
            with self._lock:
                self._seen[path] = (mark, made)
        return made

    def _read(self, path: str, status: os.stat_result) -> str | None:
        try:
            file = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118
            if os.path.commonpath((self._root, file)) != self._root or not stat.S_ISREG(status.st_mode):
                return None
            return "" if status.st_size > MAX_BYTES else _sha256(file)
        except (OSError, ValueError):
            return None


def _sha256(file: str) -> str:
    from hashlib import sha256  # 4 ms that a hook of a project without scripts need not pay

    with open(file, "rb") as opened:  # noqa: PTH123
        return sha256(opened.read()).hexdigest()
