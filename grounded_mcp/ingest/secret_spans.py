"""Finds secrets in a text: runs the tables over it and says which bytes are to go, and what they are.

Three searches run over the whole text: prefixes of vendors, fixed beginnings, names. Long runs are found by a search
for twenty equal bytes in a mask of the text, which costs next to nothing. What they hit is matched at that place by
patterns whose repetitions are bounded where they can fail, so the cost is linear in the text. The searches are compiled
by the engine that ``redact`` chose, the matching is ``re``'s: one match at a known place is cheaper there than the way
into re2. All patterns see bytes, so that both engines find the same. Knows nothing about what becomes of a span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Protocol

from grounded_mcp.ingest.secret_assign import KINDS, assigned
from grounded_mcp.ingest.secret_blocks import BARE_KEYS, armored, bare, beheaded, cookies, encoded
from grounded_mcp.ingest.secret_rules import RULES, Rule
from grounded_mcp.ingest.secret_values import is_placeholder, is_random
from grounded_mcp.ingest.secret_vendors import SHAPES, VENDORS, Vendor, is_opaque_token
from grounded_mcp.ingest.secret_view import Page, Span, joined, over_lines, page_of


class Hit(Protocol):
    """What a search hit. A part of ``re.Match``, and of re2's."""

    def span(self) -> tuple[int, int]: ...


class Search(Protocol):
    """A compiled pattern, of either engine."""

    def finditer(self, text: bytes, /) -> Iterator[Hit]: ...


Finder = Callable[[Page, int], Iterable[Span]]
"""From the place of a hit to the secrets that are there."""

_HOST_OR_FILE = re.compile(rb"@|\.[A-Za-z0-9\[]")
# What stands before the name of a thing, or before a digest: "JobId": "...", --vault-id ..., sha256=..., arn:...:job:
_IDENTIFIES = re.compile(
    rb"(?:[a-z0-9]Ids?|I[dD]|[_-]ids?|[iI]dentifier|[aA]rn|arn:[^\s\"']{1,80}|(?i:sha-?[0-9]{1,3}|md5|blake2[bs]?)"
    rb"|(?i:integrity|checksum|digest|etag))\\{0,4}[\"']?[ ]?[=:-]?[ ]?\\{0,4}[\"']?$"
)
_BEFORE = 100
_NEAR = 300
_TOKEN = re.compile(rb"[A-Za-z0-9+/=_.-]{15,}")


# --- finders ----------------------------------------------------------------------------------------------


def _vendor(row: Vendor, prefix: bytes, page: Page, at: int) -> Iterator[Span]:
    if (row.like_base64 and _within_base64(page.view, at)) or (row.random_from and page.view[at - 1 : at] == b"-"):
        return
    match = row.tail.match(page.view, at + len(prefix))
    end, tail = (match.end(), match.group()) if match else _broken(row, prefix, page.view, at)
    if not tail or is_placeholder(tail):
        return
    if row.random_from is None or is_random(tail, row.random_from):
        yield Span(at, end, row.kind, 0)


def _within_base64(view: bytes, at: int) -> bool:
    """Whether what begins here goes on from what looks random too; not after a path or the sign of a diff."""
    if view[max(0, at - 1) : at] not in (b"+", b"/"):
        return False
    before = view[max(0, at - _BEFORE) : at]
    return is_random(before[len(before.rstrip(_BASE64_BYTES)) :], 12)


def _broken(row: Vendor, prefix: bytes, view: bytes, at: int) -> tuple[int, bytes]:
    """The end and the tail of a token whose first line is too short for one, if a terminal broke it."""
    first = _TOKEN.match(view, at)
    if first is None or view[first.end() : first.end() + 1] not in (b"\n", b"\r", b"\\") or len(set(first[0])) < 8:
        return at, b""
    end = over_lines(view, first.end())
    whole = row.tail.fullmatch(joined(view, at + len(prefix), end))
    return (end, whole.group()) if whole else (at, b"")


def _rule(rule: Rule, page: Page, at: int) -> Iterator[Span]:
    match = rule.pattern.match(page.lower, at)
    if match is None or (rule.near and not _is_near(page, at, rule.near)):
        return
    for group in range(1, rule.pattern.groups + 1):
        start, end = match.span(group)
        if rule.back and start >= 0:
            before = page.view[max(0, start - 128) : start]
            start -= len(before) - len(before.rstrip(rule.back))
        if start >= 0 and rule.judge(page.view[start:end]):
            yield Span(start, end, rule.kind, 1)


def _is_near(page: Page, at: int, words: Iterable[bytes]) -> bool:
    """Whether a word stands shortly before; no further than the last placeholder, which may stand for any text."""
    window = page.lower[max(0, at - _NEAR) : at]
    before = window[window.rfind(b"[redacted:") + 1 :]
    return any(word in before for word in words)


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


def _bare_key(page: Page, at: int) -> Iterator[Span]:
    end = bare(page.view, at)
    if end is not None:
        yield Span(at, end, "private_key", 0)


def _cookies(page: Page, at: int) -> Iterator[Span]:
    for start, end in cookies(page.view, page.lower, at):
        yield Span(start, end, "cookie", 2)


def _shaped(page: Page) -> Iterator[Span]:
    """Tokens that no table knows; not the names of files, hosts and mailboxes, which look the same."""
    for start, end in _long_runs(page.view, _WORD_MASK, 20):
        run = page.view[start:end]
        if _DIGIT.search(run) is None and (run.islower() or run.isupper()):
            continue
        if page.view[max(0, start - 1) : start] in (b"/", b".", b"@") or _HOST_OR_FILE.match(page.view, end):
            continue
        kind = next((shape.kind for shape in SHAPES if shape.fits(run)), None)
        if kind is None and is_opaque_token(run) and _stands_alone(page, start, end):
            kind = "opaque_token"
        if kind is None or _IDENTIFIES.search(page.view[max(0, start - _BEFORE) : start]):
            continue
        if span := page.settle(Span(start, end, kind, 2)):
            yield span


def _encoded(page: Page, spans: Callable[[Page], list[Span]]) -> Iterator[Span]:
    """Base64 of a text that holds a secret. What is encoded twice is not looked into."""
    done = 0
    for start, _ in _long_runs(page.view, _BASE64_MASK, 32):
        if start < done:
            continue
        done, text = encoded(page.view, start)
        found = spans(page_of(text)) if text else []
        if found and (span := page.settle(Span(start, done, found[0].kind, 2))):
            yield span


def _long_runs(view: bytes, mask: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Where at least so many bytes in a row belong to an alphabet."""
    masked, needle = view.translate(mask), b"x" * least
    at = masked.find(needle)
    while at >= 0:
        end = masked.find(b" ", at + least)
        yield at, end if end >= 0 else len(view)
        at = masked.find(needle, end) if end >= 0 else -1


def _stands_alone(page: Page, start: int, end: int) -> bool:
    """As a word of a sentence ("use X for now"), or as the only argument of a call."""
    before, after = page.view[max(0, start - 2) : start], page.view[end : end + 2]
    if before in (b'("', b"('"):
        return after in (b'")', b"')")
    return before[:1].isalpha() and before[1:] == b" " and after[:1] in (b" ", b",", b".", b"\n", b"")


_DIGIT = re.compile(rb"[0-9]")
_ALNUM_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64_BYTES = _ALNUM_BYTES + b"+/"
_WORD_MASK, _BASE64_MASK = (
    bytes(ord("x") if byte in alphabet else ord(" ") for byte in range(256))
    for alphabet in (_ALNUM_BYTES + b"_-", _BASE64_BYTES)
)


# --- searches ---------------------------------------------------------------------------------------------


def _vendor_finders(rows: Iterable[Vendor]) -> dict[bytes, list[Finder]]:
    tokens: list[tuple[bytes, Finder]] = [
        (prefix, partial(_vendor, row, prefix)) for row in rows for prefix in row.prefixes
    ]
    return _longest_first(tokens + [(prefix, _bare_key) for prefix in BARE_KEYS])


def rule_finders() -> dict[bytes, list[Finder]]:
    """By the literal they begin with. None may contain or run into another: a search does not look at a byte twice."""
    blocks: list[tuple[bytes, Finder]] = [
        (b"-----begin", _key_block),
        (b"---- begin", _key_block),
        (b"private-lines", _key_block),
        (b"-----end", _key_tail),
        (b"cookie", _cookies),
        (b" -b", _cookies),
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
    """Finds the spans of secrets in UTF-8 text. ``compile`` makes a search of a pattern (bytes).

    ``ahead`` goes before the prefixes of vendors, where the engine knows it: ``secret_vendors.AHEAD``, or nothing.
    """

    def __init__(
        self, compile: Callable[[bytes], Search], vendors: Iterable[Vendor] = VENDORS, *, ahead: bytes = b""
    ) -> None:
        self._vendors, self._rules = _vendor_finders(vendors), rule_finders()
        self._prefix = compile(rb"\b" + ahead + _any_of(self._vendors))
        self._anchor = compile(_any_of(self._rules))
        self._name = compile(_any_of(sorted(KINDS, key=len, reverse=True)))

    def spans(self, text: bytes) -> list[Span]:
        """The secrets in ``text``: sorted, disjoint, on character boundaries, none touching a placeholder."""
        page = page_of(text)
        return _merged([*self._plain(page), *_encoded(page, self._plain)])

    def _plain(self, page: Page) -> list[Span]:
        """Those that stand there as they are, in any order."""
        return [
            *_hits(self._prefix, page.view, self._vendors, page),
            *_hits(self._anchor, page.lower, self._rules, page),
            *_named(self._name, page),
            *_shaped(page),
        ]


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
