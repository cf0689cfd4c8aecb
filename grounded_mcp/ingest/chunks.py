"""Cutting a text into passages that stand alone as search results. Pure.

The bodies of the chunks, joined, are the text exactly: nothing is dropped, repeated or trimmed. A text is cut at
its sections first (see ``outline``), a section that is too long at paragraphs, then lines, then sentences, then
words, at last anywhere; neighbours that are too short to mean anything are joined. Linear in the text.
Knows nothing about files, items or models; sizes are estimated by ``text.estimate_tokens``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple

from grounded_mcp.ingest.outline import Form, Section, Trail, fenced, indentation, outline
from grounded_mcp.text import estimate_tokens

__all__ = ["Chunk", "ChunkOptions", "Form", "split"]


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """[chunks]: sizes in estimated tokens and characters."""

    max_tokens: int = 220
    """The default model reads 256 tokens, and the heading trail is put in front of the body."""
    min_tokens: int = 60
    """Shorter chunks are joined with each other, and a very short one with its nearest relative."""
    max_heading: int = 120


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a text. Lines are 1-based and inclusive; ``heading`` is the trail above it, "Install > Linux"."""

    body: str
    heading: str
    start_line: int
    end_line: int


class _Unit(NamedTuple):
    """What is never cut: a line, or a part of a line that is too long. ``cost`` is that of a cut before it."""

    text: str
    line: int
    tokens: int
    cost: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """Units ``start`` to ``end`` (exclusive) under one trail. ``mixed``: of several sections below that trail."""

    start: int
    end: int
    tokens: int
    trail: Trail
    mixed: bool = False


# What a cut before a unit costs; indentation adds 0 to 3 to a line's cost.
_AFTER_BLANK = 0
_LIST_ITEM = 3
_AFTER_SENTENCE = 4
_LINE = 6
_NOT_FIRST = 4
"""Added inside a fenced block, and before a line that closes or continues the one above."""
_IN_LINE_AFTER_SENTENCE = 14
_IN_LINE_AFTER_WORD = 16
_IN_WORD = 18
_UNEVEN = 6
"""What it costs that a piece is empty or twice its share: a paragraph's end is worth going half of that way."""
_TINY = 4
"""A piece of less than a fourth of ``min_tokens`` (a heading, a one-line function) goes wherever it fits."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_SENTENCE_END = re.compile(r"(?:[.!?;][\"'”’)\]]*\s+|[。！？；]+)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")
_CLOSES = re.compile(r"\s*(?:[)\]}|>]|(?:end|else|elif|except|catch|finally|fi|done)\b)")


def split(text: str, form: Form, options: ChunkOptions) -> tuple[Chunk, ...]:
    """The chunks of a text in order; none for an empty text.

    No chunk is estimated at more than ``options.max_tokens``. In ``code``, a heading is the name of the
    definition ("Server > start").
    """
    lines = _LINES.findall(text)
    first_units, units = _units(lines, form, options.max_tokens)
    sections = outline(lines, form)
    ends = [first_units[section.start] for section in sections[1:]] + [len(units)]
    totals = [0, *accumulate(unit.tokens for unit in units)]
    pieces: list[_Piece] = []
    for section, end in zip(sections, ends, strict=True):
        start = first_units[section.start] if lines else 0
        pieces.extend(_cut(units, totals, start, end, section, options.max_tokens))
    return tuple(_chunk(units, piece, options.max_heading) for piece in _join(pieces, options))


def heading(trail: Sequence[str], limit: int) -> str:
    """The trail as one string; outer headings give way to an ellipsis until it fits."""
    shown = " > ".join(trail)
    while len(shown) > limit and len(trail) > 1:
        trail = trail[1:]
        shown = " > ".join(("…", *trail))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _chunk(units: Sequence[_Unit], piece: _Piece, max_heading: int) -> Chunk:
    own = units[piece.start : piece.end]
    body = "".join(unit.text for unit in own)
    return Chunk(body, heading(piece.trail, max_heading), own[0].line, own[-1].line)


# --- cutting ----------------------------------------------------------------------------------------------


def _units(lines: Sequence[str], form: Form, max_tokens: int) -> tuple[list[int], list[_Unit]]:
    """The units of all lines, and for each line the index of its first unit."""
    first_units: list[int] = []
    units: list[_Unit] = []
    inside = list(fenced(lines)) if form == "markdown" else [False] * len(lines)
    before = ""
    for index, line in enumerate(lines):
        first_units.append(len(units))
        cost = _cost(line, before, nested=inside[index] and index > 0 and inside[index - 1])
        tokens = 0 if line.isspace() else estimate_tokens(line)
        if tokens <= max_tokens:
            units.append(_Unit(line, index + 1, tokens, cost))
        else:
            units.extend(_parts(line, index + 1, cost, max_tokens))
        before = line
    return first_units, units


def _cost(line: str, before: str, *, nested: bool) -> int:
    if line.isspace():
        return _LINE + _NOT_FIRST
    if before.isspace() or not before:
        base = _AFTER_BLANK
    elif _ITEM.match(line):
        base = _LIST_ITEM
    else:
        base = _AFTER_SENTENCE if before.rstrip().endswith((".", "!", "?", ":", ";", "。")) else _LINE
    inward = min(indentation(line) // 2, 3)
    return base + inward + _NOT_FIRST * (nested + (_CLOSES.match(line) is not None))


def _parts(line: str, number: int, cost: int, max_tokens: int) -> Iterator[_Unit]:
    """A line that is too long, by sentences; a sentence that is too long, by words or anywhere."""
    # A character is at most one token, so half as many characters leave room to cut evenly.
    width = max(1, max_tokens // 2)
    words = re.compile(rf"(?s).{{1,{width}}}(?<=\s)|.{{1,{width}}}")
    cuts = [0, *(found.end() for found in _SENTENCE_END.finditer(line)), len(line)]
    for start, end in pairwise(cuts):
        sentence = line[start:end]
        tokens = estimate_tokens(sentence)
        if tokens <= max_tokens:
            if sentence:
                yield _Unit(sentence, number, tokens, cost)
        else:
            for word in words.findall(sentence):
                yield _Unit(word, number, estimate_tokens(word), cost)
                cost = _IN_LINE_AFTER_WORD if word[-1].isspace() else _IN_WORD
        cost = _IN_LINE_AFTER_SENTENCE


def _cut(
    units: Sequence[_Unit], totals: Sequence[int], start: int, end: int, section: Section, limit: int
) -> Iterator[_Piece]:
    """A section in pieces of at most ``limit`` tokens and of about equal size, cut where it costs least."""
    while totals[end] - totals[start] > limit:
        pieces_left = -(-(totals[end] - totals[start]) // limit)
        share = (totals[end] - totals[start]) / pieces_left
        target = totals[start] + share
        stop = bisect_right(totals, totals[start] + limit, start + 1, end)
        first = min(bisect_left(totals, target - share / 2, start + 1, stop), stop - 1)
        ranked = ((units[at].cost + _UNEVEN * abs(totals[at] - target) / share, at) for at in range(first, stop))
        best = min(ranked)[1]
        yield _Piece(start, best, totals[best] - totals[start], section.trail)
        start = best
    if start < end:
        yield _Piece(start, end, totals[end] - totals[start], section.trail)


# --- joining ----------------------------------------------------------------------------------------------


def _join(pieces: list[_Piece], options: ChunkOptions) -> list[_Piece]:
    """Join what is too short, close relatives first: under the deepest common heading, then further out."""
    deepest = max((len(piece.trail) for piece in pieces), default=0)
    for depth in range(deepest, -1, -1):
        for backward in (False, True):
            pieces = _joined(pieces, depth, options, backward=backward)
    return pieces


def _joined(pieces: Sequence[_Piece], depth: int, options: ChunkOptions, *, backward: bool) -> list[_Piece]:
    """One pass: a short piece takes in its successor, or (``backward``) is taken in by its predecessor."""
    result: list[_Piece] = []
    for piece in pieces:
        if result:
            short, other = (piece, result[-1]) if backward else (result[-1], piece)
            union = _union(result[-1], piece)
            if _belong(short, other, union, depth, options):
                result[-1] = union
                continue
        result.append(piece)
    return result


def _belong(short: _Piece, other: _Piece, union: _Piece, depth: int, options: ChunkOptions) -> bool:
    """Whether ``short`` should go into ``union``: it is tiny, or both are short, or one is the other's introduction."""
    if short.tokens >= options.min_tokens or union.tokens > options.max_tokens:
        return False
    common = _common(short.trail, other.trail)
    nested = (common == short.trail and not short.mixed) or (common == other.trail and not other.mixed)
    tiny = short.tokens < options.min_tokens // _TINY
    return len(common) >= depth and (nested or tiny or other.tokens < options.min_tokens)


def _union(one: _Piece, two: _Piece) -> _Piece:
    """Two pieces as one, named by their common trail, or by the larger where the other hardly counts."""
    small, large = sorted((one, two), key=lambda piece: piece.tokens)
    common = _common(one.trail, two.trail)
    nested = common in (one.trail, two.trail)
    outweighed = small.tokens * (2 if nested else _TINY) <= large.tokens
    mixed = large.mixed if outweighed else not nested
    return _Piece(one.start, two.end, one.tokens + two.tokens, large.trail if outweighed else common, mixed)


def _common(one: Trail, two: Trail) -> Trail:
    return tuple(here for here, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))
