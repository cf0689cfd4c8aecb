"""One written word in, index tokens out: the rules of the analyzer, word by word.

``text.Analyzer`` finds the words of a text and remembers what they became; this room says what a word is and what
it becomes. Pure: strings in, strings out. Knows nothing about whole texts, options, engines or scores.

A word is letters, digits and underscores, held together by connectors (``- . / : @ # ->``), perhaps with a sigil
in front (``--flag @scope $VAR #12 .env``). A word of several parts is a compound:

======================  ====================================================================================
``KB-4156``             the whole, each part as a plain word, and every run of parts with its connectors
``src/a.py:42``         likewise; a backslash is a slash, and the line number is not part of the path
``getUserById``         likewise; parts begin at capitals, but letters and digits are never cut apart
``v1.0.21``             one part, never cut: ``v1.0.21`` and ``1.0.21``
``9f86d081884c7d65``    the whole, and ``^9f86d08`` so that a hash and its abbreviations meet
``数据库``              each character and each pair of neighbours
======================  ====================================================================================

A marked token cannot be typed: ``~user`` is a part of an identifier, ``~getuserbyid`` a whole identifier in any
spelling, ``^9f86d08`` the head of a hash. A query for an identifier asks for marked tokens besides the whole, and
so meets related identifiers but not prose that happens to hold the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain, pairwise

from grounded_mcp.folding import HASH_HEAD, SIGNS, STOP_WORDS, UNSPACED, fold, words

__all__ = ["MAX_TOKEN", "STOP_WORDS", "Ask", "Stem", "asks", "fold", "index_terms", "words"]

Stem = Callable[[str], str]
_Span = tuple[int, int]

MAX_TOKEN = 64
"""Longest token in characters. A longer one becomes its first 47, ``~`` and 16 hex digits of its SHA-256."""
MAX_PARTS = 12
"""An identifier of more parts, or longer than ``MAX_TOKEN``, is taken for noise (base64) and stays in one piece."""
ALL_RUNS = 6
"""Up to so many parts every run is indexed (15 at most); beyond that pairs, triples and endings."""
_RUN = re.compile(f"[{UNSPACED}]+")
_PLAIN = re.compile("[A-Z]?[a-z]{1,31}|[A-Z]{1,31}|[0-9]{1,31}")
_ENGLISH = re.compile("[a-z]+(?:'[a-z]+)*")
_LANGUAGE = re.compile(r"([a-z](?:\+\+|#))\d*")
_SIGIL = re.compile(r"--?|[.@#]|\$\{?")
_TAIL = re.compile(r"(?:\+\+\d*|#)$")
_LINE = re.compile(r"[./][^:]*((?::\d+)+)$")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+[^\W_]*")
_UNIT = re.compile(rf"({_VERSION.pattern})|[\w'{SIGNS}]+")
_ACRONYMS = re.compile("[A-Z]{2,}s")
# Digits, small letters, the apostrophe and all that is not ASCII: named by what it is not, which compiles faster.
_LOW = r"[^\x00-\x26\x28-\x2f\x3a-\x60\x7b-\x7f]"
_PART = re.compile(rf"{_ACRONYMS.pattern}(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?{_LOW}+|[A-Z]+{_LOW}*")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}|[0-9a-f]{40}")


def index_terms(word: str, stem: Stem) -> tuple[str, ...]:
    """The index tokens of one word of a folded text, each once."""
    return tuple(chain.from_iterable(_index(piece, stem) for piece in _pieces(word)))


@dataclass(frozen=True, slots=True)
class Ask:
    """What a query wants by one of its words: any of ``terms``. ``surface`` is that word as it was typed."""

    surface: str
    terms: tuple[str, ...]


def asks(word: str, surface: str, stem: Stem) -> Iterator[Ask]:
    """What a query asks for by one word of its folded text. Every term is an index token of that word."""
    pieces = _pieces(word)
    for piece in pieces:
        # The closing brace of ${HOME} is no part of the word: it is shown as $HOME.
        yield from _asks(piece, surface.replace("${", "$") if len(pieces) == 1 else piece, stem)


def _pieces(word: str) -> Sequence[str]:
    """Split at apostrophes, save those inside an English word (``don't``) and a possessive after anything."""
    if "'" not in word or _ENGLISH.fullmatch(word.casefold()):
        return (word,)
    return word.removesuffix("'s").split("'")


def _index(piece: str, stem: Stem) -> Iterable[str]:
    if _PLAIN.fullmatch(piece):
        return (stem(piece.lower()),)
    if _RUN.fullmatch(piece):
        return (*piece, *map("".join, pairwise(piece)))
    if language := _LANGUAGE.fullmatch(piece.casefold()):
        return dict.fromkeys(language.group(0, 1))
    word = _take_apart(piece)
    texts = dict.fromkeys(chain(word.wholes(), word.inner(), word.singles()))
    marks = (mark for _, mark in word.marks(stem))
    return dict.fromkeys(chain((_term(text, stem) for text in texts), word.heads(), word.spellings(), marks))


def _asks(piece: str, surface: str, stem: Stem) -> Iterator[Ask]:
    if _RUN.fullmatch(piece):
        grams = map("".join, pairwise(piece)) if piece[1:] else (piece,)
        yield from (Ask(gram, (gram,)) for gram in grams)
        return
    if language := _LANGUAGE.fullmatch(piece.casefold()):
        yield Ask(surface, tuple(dict.fromkeys(language.group(0, 1))))
        return
    word = _take_apart(piece)
    texts = chain(word.wholes(), word.paths(), word.singles() if word.alone else ())
    heads = word.heads() if word.alone else ()
    if terms := dict.fromkeys(chain((_term(text, stem) for text in texts), heads, word.spellings())):
        yield Ask(surface, tuple(terms))
    yield from (Ask(part, (mark,)) for part, mark in word.marks(stem))


@dataclass(frozen=True, slots=True)
class _Name:
    """An identifier, a version, or several joined by hyphens: where it stands in the body, and its parts."""

    span: _Span
    parts: tuple[_Span, ...]


@dataclass(frozen=True)
class _Word:
    """A word taken apart: sigil, body, line number, and the body's names by path segment."""

    sigil: str
    body: str
    line: str
    segments: tuple[tuple[_Name, ...], ...]

    @cached_property
    def names(self) -> tuple[_Name, ...]:
        return tuple(chain.from_iterable(self.segments))

    @cached_property
    def parts(self) -> tuple[_Span, ...]:
        return tuple(chain.from_iterable(name.parts for name in self.names))

    @property
    def alone(self) -> bool:
        """One part whose sigil says little: ``#12`` may be written 12, but ``.env`` and ``-x`` not env and x."""
        return len(self.parts) == 1 and self.sigil not in ("-", "--", ".")

    def wholes(self) -> Iterator[str]:
        """The word itself: with its sigil, with its line number, and without."""
        if self.sigil and self.names:
            yield self.sigil + self.body + self.line
        if self.alone or len(self.parts) > 1:
            yield self.body + self.line
            yield self.body

    def paths(self) -> Iterator[str]:
        """How else a path may be written: without its first folders, or as one segment of several parts."""
        spans = self._segment_spans()
        for segment, (start, end) in zip(self.segments, spans, strict=True):
            if spans[0][1] < start < spans[-1][0]:
                yield self.body[start : spans[-1][1]]
            if sum(len(name.parts) for name in segment) > 1:
                yield self.body[start:end]

    def inner(self) -> Iterator[str]:
        """Every run: of names (with their outer underscores), of all parts, of the parts of one name."""
        names = [name.span for name in self.names]
        inside = chain.from_iterable(_runs(name.parts) for name in self.names)
        spans = chain(names, self._segment_spans(), _runs(names), _runs(self.parts), inside)
        return (self.body[start:end] for start, end in dict.fromkeys(spans))

    def singles(self) -> Iterator[str]:
        """Each part, a version without its v, the plural of an acronym without its s, and the line number."""
        for start, end in self.parts:
            part = self.body[start:end]
            yield part
            if part[0] in "vV" and _VERSION.fullmatch(part):
                yield part[1:]
            elif _ACRONYMS.fullmatch(part):
                yield part[:-1]
        yield from self.line.split(":")[1:]

    def heads(self) -> Iterator[str]:
        """The marked head of each part that looks like a hash."""
        hashes = (self.body[start:end].casefold() for start, end in self.parts)
        return (f"^{digits[:HASH_HEAD]}" for digits in hashes if _HASH.fullmatch(digits))

    def spellings(self) -> Iterator[str]:
        """Each identifier's marked form, the same in camelCase, snake_case and kebab-case."""
        for parts in self._identifiers(lambda part: part[0].isalpha()):
            yield _fit("~" + "".join(parts).casefold())

    def marks(self, stem: Stem) -> Iterator[tuple[str, str]]:
        """The telling parts of each identifier made of letters only, with their marked forms."""
        for parts in self._identifiers(str.isalpha):
            telling = (part for part in parts if part[1:] and part.casefold() not in STOP_WORDS)
            yield from ((part, _fit("~" + _term(part, stem))) for part in telling)

    def _identifiers(self, fits: Callable[[str], bool]) -> Iterator[list[str]]:
        for name in self.names:
            parts = [self.body[start:end] for start, end in name.parts]
            if len(parts) > 1 and all(map(fits, parts)):
                yield parts

    def _segment_spans(self) -> list[_Span]:
        return [(segment[0].span[0], segment[-1].span[1]) for segment in self.segments]


def _take_apart(word: str) -> _Word:
    sigil = found[0] if (found := _SIGIL.match(word)) else ""
    body = re.sub(r"[\\/]+", "/", _TAIL.sub("", word[len(sigil) :]))
    line = numbered[1] if (numbered := _LINE.search(body)) else ""
    body = body.removesuffix(line)
    return _Word(sigil.removesuffix("{"), body, line, _segments(body))


def _segments(body: str) -> tuple[tuple[_Name, ...], ...]:
    segments: list[list[_Name]] = []
    end = 0
    for unit in _UNIT.finditer(body):
        connector, end = body[end : unit.start()], unit.end()
        if not (parts := _parts(body, unit)):
            continue
        if connector == "-" and segments:
            before = segments[-1].pop()
            segments[-1].append(_Name((before.span[0], end), before.parts + parts))
        elif "/" in connector or not segments:
            segments.append([_Name(unit.span(), parts)])
        else:
            segments[-1].append(_Name(unit.span(), parts))
    return tuple(map(tuple, segments))


def _parts(body: str, unit: re.Match[str]) -> tuple[_Span, ...]:
    """None in a unit of underscores only."""
    span = unit.span()
    if unit[1] or span[1] - span[0] > MAX_TOKEN or _HASH.fullmatch(unit[0].casefold()):
        return (span,)
    parts = tuple(part.span() for part in _PART.finditer(body, *span))
    return parts if len(parts) <= MAX_PARTS else (span,)


def _runs(spans: Sequence[_Span]) -> Iterator[_Span]:
    """Runs of two or more neighbours."""
    count = len(spans)
    for first in range(count - 1):
        ends = {first + 1, min(first + 2, count - 1), count - 1}
        for last in range(first + 1, count) if count <= ALL_RUNS else sorted(ends):
            yield spans[first][0], spans[last][1]


def _term(text: str, stem: Stem) -> str:
    """The token for a text: lower case, stemmed when it is letters only, of bounded length."""
    low = text.casefold()
    return _fit(stem(low) if (low.isalpha() and low.isascii()) or "'" in low else low)


def _fit(token: str) -> str:
    if len(token) <= MAX_TOKEN:
        return token
    return f"{token[: MAX_TOKEN - 17]}~{sha256(token.encode()).hexdigest()[:16]}"
