"""The files of a project as they are now, against what was indexed of them (C6).

Nothing is followed out of the project, and a file whose size and time are as indexed is not read. Knows nothing about
how an answer is made.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from grounded_mcp.foreground import ELSEWHERE
from grounded_mcp.ingest.walk import decode, read_bytes
from grounded_mcp.pack.pointing import Line
from grounded_mcp.packing import OnDisk
from grounded_mcp.reading import Opened
from grounded_mcp.text import fingerprint
from grounded_mcp.values import Item, Recall

MAX_BYTES = 4_194_304
"""A larger file is not read: whether it changed is unknown."""
GLANCE_BYTES = 65_536
"""Beside a recall a larger one is not read either."""
MAX_SEEN = 1_024
"""Comparisons beside recalls that are kept: after a checkout many files are touched and as they were."""


class Disk:
    """One project's folder. Paths are relative to it, with ``/`` between segments. ``scope``: whose documents are in
    it, for answers that hold those of other projects, too."""

    def __init__(self, root: Path, scope: str | None = None) -> None:
        self._root = root
        self._scope = scope
        self._seen: dict[tuple[str, str, int], OnDisk] = {}
        self._here = root != Path(ELSEWHERE)

    def recalled(self, found: Recall) -> Recall:
        """The same list with what is no longer as it was indexed: one look at each document's file."""
        items = {each.found.item.id: each.found.item for each in found.candidates if each.found}
        states = {id_: state for id_, item in items.items() if (state := self._outdated(item))}
        return replace(found, disk=states) if states else found

    def opened(self, page: Opened) -> Opened:
        """The same page, with whether its document's file is no longer as it was indexed."""
        state = self._outdated(page.item)
        return replace(page, disk=state) if state else page

    def _outdated(self, item: Item) -> OnDisk | None:
        if item.scope != self._scope or not self._here:
            return None
        state = self.state(item, glance=True)
        return state if state in ("changed", "missing") else None

    def state(self, item: Item, *, glance: bool = False) -> OnDisk | None:
        """Whether a document's file is still there and as it was indexed; None for what is no file.

        One of another time is read to tell. ``glance``: not if its size is another, too, or it is large; and once.
        """
        if item.kind != "doc" or not item.key:
            return None
        if not self._here:
            return "unknown"
        try:
            found = os.stat(os.path.join(self._root, item.key), follow_symlinks=False)  # noqa: PTH116, PTH118 - fast
        except (OSError, ValueError):
            return "missing"
        held = (item.attrs.get("size"), item.attrs.get("mtime_ns"))
        if held == (str(found.st_size), str(found.st_mtime_ns)):
            return "as indexed"
        if not glance:
            return self._compared(item)
        if held[0] != str(found.st_size):
            return "changed"
        return self._glanced(item, found) if found.st_size <= GLANCE_BYTES else "unknown"

    def _glanced(self, item: Item, found: os.stat_result) -> OnDisk:
        mark = (item.id, item.content_hash, found.st_mtime_ns)
        if mark not in self._seen:
            if len(self._seen) >= MAX_SEEN:
                self._seen.clear()
            self._seen[mark] = self._compared(item)
        return self._seen.get(mark, "unknown")

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
