"""Lines of a transcript that is a markdown file, one at a time. Knows no agent's format.

Such a file says nothing about where its messages end, so its readers begin at its start again when it changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from grounded_mcp.ingest.transcripts.lines import MAX_LINE_BYTES, open_plain
from grounded_mcp.ingest.transcripts.turns import Tally, moment

MAX_BLOCK_CHARS = 4 * 1024 * 1024
"""Of one message. A longer one is a pasted file, not conversation."""


class TextLine(NamedTuple):
    """``offset``: bytes from the start of the file. ``text``: without its line end. ``ended``: whether it had one."""

    offset: int
    text: str
    ended: bool


class Block:
    """Lines that belong together, as far as they are kept: a message may be longer than memory is for."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.lines: list[str] = []
        self.chars = 0

    def add(self, line: str) -> None:
        self.chars += len(line) + 1
        if not self.too_long:
            self.lines.append(line)

    @property
    def too_long(self) -> bool:
        return self.chars > MAX_BLOCK_CHARS


def text_lines(path: Path, tally: Tally) -> Iterator[TextLine]:
    """The lines of a file from its start, with any line ends. Bytes that are no UTF-8 become U+FFFD.

    A line longer than ``MAX_LINE_BYTES`` is counted in ``tally`` and left out. Raises: OSError.
    """
    with open_plain(path) as file:
        tally.end = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            start, ended = tally.end, raw.endswith(b"\n")
            if len(raw) > MAX_LINE_BYTES and not ended:
                tally.seen += 1
                tally.skip("longer than the limit", f"byte {start}")
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_LINE_BYTES)
                tally.end = file.tell()
                continue
            text = raw.removeprefix(b"\xef\xbb\xbf") if start == 0 else raw
            if ended:
                tally.end = file.tell()
            yield TextLine(start, text.decode("utf-8", "replace").rstrip("\r\n"), ended)


def without_thoughts(text: str) -> str:
    """A text without what a model thought aloud: from a line that begins with ``<think>`` to the next ``</think>``.

    Thoughts without an end stay: they may hold the answer.
    """
    kept: list[str] = []
    at = 0
    while True:
        start = 0 if at == 0 and text.startswith("<think>") else text.find("\n<think>", at)
        end = text.find("</think>", start) if start >= 0 else -1
        if end < 0:
            return "".join([*kept, text[at:]]).strip()
        kept.append(text[at:start])
        at = end + len("</think>")


def local_moment(text: str) -> float | None:
    """Seconds since the epoch for a time in a transcript, or None: without an offset it is one of this machine's zone.

    Where a clock was put back, a time that there was twice is the earlier one.
    """
    try:
        return moment(datetime.fromisoformat(text.strip()).astimezone().isoformat())
    except (ValueError, OverflowError, OSError):
        return None
