"""A text as the rules see it: the same number of bytes, with what only stands in their way made neutral.

Escaped line breaks are line breaks, and colour codes are spaces, so that a pattern need not know of either. Offsets are
those of the text. Knows nothing about what a secret looks like, but that a terminal breaks a long one over lines.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import NamedTuple

from grounded_mcp.ingest.secret_values import is_random

PLACEHOLDER = re.compile(rb"\[REDACTED:[a-z0-9_]{1,32}:[0-9a-f]{4}\]")
_ESCAPED = ((rb"\n", b"\\\n"), (rb"\r", b"\\\r"), (rb"\t", b"\\\t"))
_COLOUR = re.compile(rb"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033)\[[0-9;?]{0,20}[A-Za-z]")
_WORD_RUN = re.compile(rb"[A-Za-z0-9_-]*")
_BROKEN = re.compile(rb"(?:\\{0,8}\r)?\\{0,8}\n([A-Za-z0-9_+/=.-]{8,})")
_NARROWEST = 60
"""Columns, in bytes, from which a line may have been broken by a terminal rather than by who wrote it."""
_MANY = 24
"""Lines of a token: a long JSON web token has as many on a terminal of 80 columns."""


class Span(NamedTuple):
    """Bytes to be replaced. ``rank``: of spans that overlap, the lowest rank names the kind."""

    start: int
    end: int
    kind: str
    rank: int


@dataclass(frozen=True, slots=True)
class Page:
    """One text as the patterns see it, once as it is and once in lower case.

    ``placeholders``: where earlier redactions stand.
    """

    view: bytes
    lower: bytes
    placeholders: tuple[tuple[int, int], ...]

    def settle(self, span: Span) -> Span | None:
        """The span widened to whole characters, words and broken lines; None if it touches a placeholder.

        No part of a token stays, what was redacted stays as it is, and a second search sees the same borders.
        """
        start, end = span.start, span.end
        while 0 < start < len(self.view) and 0x80 <= self.view[start] < 0xC0:
            start -= 1
        while end < len(self.view) and 0x80 <= self.view[end] < 0xC0:
            end += 1
        if _WORD_RUN.fullmatch(self.view, end - 1, end):
            word = _WORD_RUN.match(self.view, end)
            end = over_lines(self.view, word.end() if word else end)
        nearest = bisect.bisect_right(self.placeholders, (end, len(self.view))) - 1
        if nearest >= 0 and self.placeholders[nearest][1] >= start:
            return None
        return Span(start, end, span.kind, span.rank)


def page_of(text: bytes) -> Page:
    view = text
    if b"\\" in view:
        for escaped, plain in _ESCAPED:
            view = view.replace(escaped, plain)
    if b"[" in view and (b"\x1b" in view or b"\\" in view):
        view = _COLOUR.sub(lambda code: b" " * len(code[0]), view)
    known = tuple(match.span() for match in PLACEHOLDER.finditer(text)) if b"[REDACTED:" in text else ()
    return Page(view, view.lower(), known)


def over_lines(view: bytes, end: int) -> int:
    """Where a token ends that seems to end at ``end``, where a terminal may have broken it.

    It goes on in the next line if its own is long, and the next begins with what is random too, or is full as well.
    """
    if view[end : end + 1] not in (b"\n", b"\r", b"\\"):
        return end
    width = end - view.rfind(b"\n", max(0, end - 1024), end) - 1
    for _ in range(_MANY if width >= _NARROWEST else 0):
        more = _BROKEN.match(view, end)
        if more is None or not (len(more[1]) == width or is_random(more[1], 8)):
            break
        end = more.end()
        if len(more[1]) != width:
            break
    return end


def joined(view: bytes, start: int, end: int) -> bytes:
    """The bytes between two places of the view without the line breaks."""
    return re.sub(rb"(?:\\{0,8}\r)?\\{0,8}\n", b"", view[start:end])
