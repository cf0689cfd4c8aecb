"""Finds secrets in a text: runs the tables over it and says which bytes are to go, and what they are.

Four searches run over the whole text: prefixes of vendors, fixed beginnings, names, long runs. What they hit is
matched at that place by patterns whose repetitions are bounded where they can fail, so the cost is linear in the
text. The searches are compiled by the engine that ``redact`` chose, the matching is ``re``'s: one match at a known
place is cheaper there than the way into re2. All patterns see bytes, so that both engines find the same. Knows
nothing about what becomes of a span.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

from grounded_mcp.ingest.secret_assign import KINDS, assigned
from grounded_mcp.ingest.secret_blocks import armored, beheaded, cookies
from grounded_mcp.ingest.secret_rules import RULES, Rule
from grounded_mcp.ingest.secret_values import is_placeholder, is_random
from grounded_mcp.ingest.secret_vendors import SHAPES, VENDORS, Vendor, is_opaque_token


class Hit(Protocol):
    """What a search hit. A part of ``re.Match``, and of re2's."""

    def span(self) -> tuple[int, int]: ...


class Search(Protocol):
    """A compiled pattern, of either engine."""

    def finditer(self, text: bytes, /) -> Iterator[Hit]: ...


class Span(NamedTuple):
    """Bytes to be replaced. ``rank``: of spans that overlap, the lowest rank names the kind."""

    start: int
    end: int
    kind: str
    rank: int


@dataclass(frozen=True, slots=True)
class Page:
    """One text as the patterns see it: an escaped newline is a newline here. Offsets are those of the text.

    ``placeholders``: where earlier redactions stand.
    """

    view: bytes
    lower: bytes
    placeholders: tuple[tuple[int, int], ...]

    def settle(self, span: Span) -> Span | None:
        """The span widened to whole characters and words; None if it touches a placeholder.

        No part of a token stays, what was redacted stays as it is, and a second search sees the same borders.
        """
        start, end = span.start, span.end
        while 0 < start < len(self.view) and 0x80 <= self.view[start] < 0xC0:
            start -= 1
        while end < len(self.view) and 0x80 <= self.view[end] < 0xC0:
            end += 1
        if _WORD_RUN.fullmatch(self.view, end - 1, end):
            word = _WORD_RUN.match(self.view, end)
            end = word.end() if word else end
        nearest = bisect.bisect_right(self.placeholders, (end, len(self.view))) - 1
        if nearest >= 0 and self.placeholders[nearest][1] >= start:
            return None
        return Span(start, end, span.kind, span.rank)


Finder = Callable[[Page, int], Iterable[Span]]
"""From the place of a hit to the secrets that are there."""

PLACEHOLDER = re.compile(rb"\[REDACTED:[a-z0-9_]{1,32}:[0-9a-f]{4}\]")
_WORD_RUN = re.compile(rb"[A-Za-z0-9_-]*")
_LONG_RUN = rb"[A-Za-z0-9_-]{20,}"
_HOST_OR_FILE = re.compile(rb"@|\.[A-Za-z0-9\[]")
_NEAR = 300


# --- finders ----------------------------------------------------------------------------------------------


def _vendor(row: Vendor, prefix: bytes, page: Page, at: int) -> Iterator[Span]:
    if row.like_base64 and page.view[max(0, at - 1) : at] in (b"+", b"/"):
        return
    match = row.tail.match(page.view, at + len(prefix))
    if match is None or is_placeholder(match.group()):
        return
    if row.random_from is None or is_random(match.group(), row.random_from):
        yield Span(at, match.end(), row.kind, 0)


def _rule(rule: Rule, page: Page, at: int) -> Iterator[Span]:
    match = rule.pattern.match(page.lower, at)
    if match is None or (rule.near and not any(word in _line_before(page, at) for word in rule.near)):
        return
    for group in range(1, rule.pattern.groups + 1):
        start, end = match.span(group)
        if rule.back and start >= 0:
            before = page.view[max(0, start - 128) : start]
            start -= len(before) - len(before.rstrip(rule.back))
        if start >= 0 and rule.judge(page.view[start:end]):
            yield Span(start, end, rule.kind, 1)


def _line_before(page: Page, at: int) -> bytes:
    """The text shortly before; no further than the last placeholder, which may stand for any length of text."""
    window = page.lower[max(0, at - _NEAR) : at]
    return window[window.rfind(b"[redacted:") + 1 :]


def _named(search: Search, page: Page) -> Iterator[Span]:
    """The values of names. Of ``password=token=x`` only the last name has one."""
    hits = [hit.span() for hit in search.finditer(page.lower)]
    last = Span(0, 0, "", 0)
    for (at, end), (after, stop) in pairwise([*hits, (len(page.view), 0)]):
        chained = after == end + 1 and page.view[end:after] == page.view[stop : stop + 1] == b"="
        found = None if chained or last.start <= at < last.end else assigned(page.view, at, end)
        span = found and page.settle(Span(found.start, found.end, found.kind, 3))
        if span:
            last = span
            yield span


def _key_block(page: Page, at: int) -> Iterator[Span]:
    end = armored(page.view, at)
    if end is not None:
        yield Span(at, end, "private_key", 0)


def _key_tail(page: Page, at: int) -> Iterator[Span]:
    found = beheaded(page.view, at)
    if found is not None:
        yield Span(*found, "private_key", 0)


def _cookies(page: Page, at: int) -> Iterator[Span]:
    for start, end in cookies(page.view, page.lower, at):
        yield Span(start, end, "cookie", 2)


def _shaped(search: Search, page: Page) -> Iterator[Span]:
    """Tokens that no table knows; not the names of files, hosts and mailboxes, which look the same."""
    for hit in search.finditer(page.view):
        start, end = hit.span()
        run = page.view[start:end]
        if page.view[max(0, start - 1) : start] in (b"/", b".", b"@") or _HOST_OR_FILE.match(page.view, end):
            continue
        kind = next((shape.kind for shape in SHAPES if shape.fits(run)), None)
        if kind is None and is_opaque_token(run) and _stands_alone(page, start, end):
            kind = "opaque_token"
        span = kind and page.settle(Span(start, end, kind, 2))
        if span:
            yield span


def _stands_alone(page: Page, start: int, end: int) -> bool:
    """As a word of a sentence ("use X for now"), or as the only argument of a call."""
    before, after = page.view[max(0, start - 2) : start], page.view[end : end + 2]
    if before in (b'("', b"('"):
        return after in (b'")', b"')")
    return before[:1].isalpha() and before[1:] == b" " and after[:1] in (b" ", b",", b".", b"\n", b"")


# --- searches ---------------------------------------------------------------------------------------------


def _vendor_finders(rows: Iterable[Vendor]) -> dict[bytes, list[Finder]]:
    return _longest_first([(prefix, partial(_vendor, row, prefix)) for row in rows for prefix in row.prefixes])


def rule_finders() -> dict[bytes, list[Finder]]:
    """By the literal they begin with. None may contain or run into another: a search does not look at a byte twice."""
    blocks: list[tuple[bytes, Finder]] = [
        (b"-----begin", _key_block),
        (b"---- begin", _key_block),
        (b"private-lines", _key_block),
        (b"-----end", _key_tail),
        (b"cookie", _cookies),
    ]
    return _longest_first([(anchor, partial(_rule, rule)) for rule in RULES for anchor in rule.anchors] + blocks)


def _longest_first(pairs: Iterable[tuple[bytes, Finder]]) -> dict[bytes, list[Finder]]:
    """Literal -> the finders of it and of every literal that it begins with, the longest literal first.

    A search for alternatives reports the first that fits, so that "sk-" would hide "sk-proj-".
    """
    pairs = list(pairs)
    literals = sorted({literal for literal, _ in pairs}, key=lambda literal: (-len(literal), literal))
    return {each: [find for literal, find in pairs if each.startswith(literal)] for each in literals}


class Scanner:
    """Finds the spans of secrets in UTF-8 text. ``compile`` makes a search of a pattern (bytes)."""

    def __init__(self, compile: Callable[[bytes], Search], vendors: Iterable[Vendor] = VENDORS) -> None:
        self._vendors, self._rules = _vendor_finders(vendors), rule_finders()
        self._prefix = compile(rb"\b" + _any_of(self._vendors))
        self._anchor = compile(_any_of(self._rules))
        self._name = compile(_any_of(sorted(KINDS, key=len, reverse=True)))
        self._run = compile(_LONG_RUN)

    def spans(self, text: bytes) -> list[Span]:
        """The secrets in ``text``: sorted, disjoint, on character boundaries, none touching a placeholder."""
        view = text.replace(rb"\n", b"\\\n").replace(rb"\r", b"\\\r").replace(rb"\t", b"\\\t")
        known = tuple(match.span() for match in PLACEHOLDER.finditer(text))
        page = Page(view, view.lower(), known)
        spans = [
            *_hits(self._prefix, view, self._vendors, page),
            *_hits(self._anchor, page.lower, self._rules, page),
            *_named(self._name, page),
            *_shaped(self._run, page),
        ]
        return _merged(spans)


def _any_of(literals: Iterable[bytes]) -> bytes:
    """Alternatives, grouped by their first byte: ``re`` tries them one by one."""
    groups: dict[bytes, list[bytes]] = {}
    for literal in literals:
        groups.setdefault(literal[:1], []).append(re.escape(literal[1:]))
    return (
        b"(?:" + b"|".join(re.escape(first) + b"(?:" + b"|".join(rest) + b")" for first, rest in groups.items()) + b")"
    )


def _hits(search: Search, text: bytes, finders: Mapping[bytes, list[Finder]], page: Page) -> Iterator[Span]:
    """What the finders of each hit find; hits inside of what was found are not looked at."""
    last = Span(0, 0, "", 0)
    for hit in search.finditer(text):
        at, end = hit.span()
        if last.start <= at < last.end:
            continue
        for find in finders[text[at:end]]:
            for span in filter(None, map(page.settle, find(page, at))):
                last = max(last, span)
                yield span


def _merged(spans: list[Span]) -> list[Span]:
    """Sorted and disjoint; what overlaps becomes one."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            last = merged.pop()
            best = min(last, span, key=lambda each: each.rank)
            merged.append(Span(last.start, max(last.end, span.end), best.kind, best.rank))
        else:
            merged.append(span)
    return merged
