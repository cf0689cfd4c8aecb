"""The files of a project as they are now, against what was indexed of them (C6).

Nothing is followed out of the project, and a file whose size and time are as indexed is not read. Knows nothing about
how an answer is made.
"""

from __future__ import annotations

import os
from pathlib import Path

from grounded_mcp.foreground import ELSEWHERE
from grounded_mcp.ingest.walk import decode, read_bytes
from grounded_mcp.pack.pointing import Line
from grounded_mcp.packing import OnDisk
from grounded_mcp.text import fingerprint
from grounded_mcp.values import Item

MAX_BYTES = 4_194_304
"""A larger file is not read: whether it changed is unknown."""


class Disk:
    """One project's folder. Paths are relative to it, with ``/`` between segments."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._here = root != Path(ELSEWHERE)

    def state(self, item: Item) -> OnDisk | None:
        """Whether a document's file is still there and as it was indexed; None for what is no file."""
        if item.kind != "doc" or not item.key:
            return None
        if not self._here:
            return "unknown"
        try:
            found = os.stat(self._root / item.key, follow_symlinks=False)  # noqa: PTH116 - one call
        except (OSError, ValueError):
            return "missing"
        held = (item.attrs.get("size"), item.attrs.get("mtime_ns"))
        return "as indexed" if held == (str(found.st_size), str(found.st_mtime_ns)) else self._compared(item)

    def line(self, item: Item, indexed: Line, state: OnDisk | None) -> int | None:
        """Where a line is now: in a file that changed the nearest one that says the same; None where none does."""
        if state != "changed":
            return indexed.number
        lines = (self._text(item) or "").splitlines()
        same = [number for number, line in enumerate(lines, 1) if line.strip() == indexed.text.strip()]
        return min(same, key=lambda number: abs(number - indexed.number), default=None)

    def _compared(self, item: Item) -> OnDisk:
        text = self._text(item)
        if text is None:
            return "unknown"
        return "as indexed" if fingerprint(text) == item.content_hash else "changed"

    def _text(self, item: Item) -> str | None:
        """A file's text, empty for what is none any more; None for what cannot be read."""
        data = read_bytes(self._root, item.key or "", MAX_BYTES)
        if not isinstance(data, bytes):
            return None
        text = decode(item.key or "", data)
        return text if isinstance(text, str) else ""

    def has(self, path: str) -> bool:
        """Whether there is anything under a relative path in the project; nothing is said to be gone unseen."""
        if not self._here:
            return True
        try:
            return (self._root / path).resolve().is_relative_to(self._root.resolve()) and (self._root / path).exists()
        except (OSError, ValueError, RuntimeError):
            return False
