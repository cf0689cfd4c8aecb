"""Whether two texts say the same thing: paraphrases do, texts that differ in one telling word do not (R10, T28).

Pure. Two texts say the same when three things hold, each a plain comparison of words:

- they hold the same *marks*: numbers, identifiers, letters that name something ("plan B"), names of environments, and
  words that turn a statement (negation, restriction, order, doubt);
- one says all that the other says, and at most a few words more: a word exchanged for another is another fact;
- in the same order, or with the beginning moved to the end ("X runs the tests", "tests run with X"): "A needs B"
  is not "B needs A".

Function words, and words that only say *how it is said* ("use", "run", "always", "command"), do not count;
English words are compared by stem. Knows nothing about scores or stored things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from py_rust_stemmers import SnowballStemmer

from grounded_mcp.tokens import STOP_WORDS

_stem = SnowballStemmer("english").stem_word

MIN_SHARED = 3
"""Shorter texts say the same only in the same words and order: not "cache is redis" and "cache is a redis cluster"."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that turn the statement they are added to: one of them more, and it is another statement.
_TURNS = _words("""
    not no none neither nor without avoid stop disable forbid forbidden prohibit refuse deny
    nicht kein keine keinen nie niemals ohne pas jamais sans aucun nunca sin ningún jamás não sem non senza
    niet geen nooit не нет никогда
    only except unless until instead rather than over under above below before after from against between versus
    minimum maximum least most
    maybe perhaps possibly might supposedly deprecated obsolete legacy old former formerly previously removed
    wrong false incorrect broken fail
""")
_ENVIRONMENTS = _words("prod production staging stage dev development qa uat ci local preview canary sandbox beta")
# "the test database" names an environment; "the tests" do not.
_SOMETIMES_ENVIRONMENTS = _words("test live demo")
_PLACES = frozenset(map(_stem, _words("env environment server cluster db database instance system host account")))
_MARKS = (
    {_stem(word): word for word in _TURNS}
    | {word: word for word in _TURNS | _ENVIRONMENTS}
    | {"never": "not", "cannot": "not", "vs": "versus"}
)

# Words about how something is said or done, not about what.
_FILLER = _words("""
    use run execute invoke perform via through command suite way always please must need want just simply all every
    sure we our us let remember note
""")
_FILLER_STEMS = frozenset(map(_stem, _FILLER))

# A capital names something ("plan A"), and so do two that would be function words in small letters. A small letter does
# where no language that is common here has it for a word.
_NAMES = frozenset("ABCDEFGHJKLMNOPQRSTUVWXYZbcdfghjlmnpqrtvx") | {"IT", "US"}
_INSIDE = "`'\"’)]},"
"""Ends of words after which the sentence goes on."""

_PADDING = re.compile(r"(?i)\b(?:make|be) sure(?: (?:to|that))?\b")
_WORD = re.compile(r"(?:(?<![\w-])--?(?=[A-Za-z])|[@#$])?\w+(?:['’._/:@\\-]+\w+)*(?:\+\+|#)?")
_IDENTIFIER = re.compile(r"\d|[^\w'’]|_|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Gist:
    """What a text says, as comparable words. ``told`` holds marks and content words, each once, in order."""

    marks: frozenset[str]
    told: tuple[str, ...]

    def same_as(self, other: Gist, extra_words: int) -> bool:
        """Whether both say the same, one of them with at most ``extra_words`` words more."""
        short, long = (self.told, other.told) if len(self.told) <= len(other.told) else (other.told, self.told)
        if len(short) < MIN_SHARED:
            return short == long != () and self.marks == other.marks
        if len(long) - len(short) > extra_words or short[0] not in long or self.marks != other.marks:
            return False
        shared = frozenset(short)
        common = tuple(word for word in long if word in shared)
        return len(common) == len(short) and _rotated(short, common)


def gist(text: str) -> Gist:
    """The gist of a text; linear in its length."""
    told: dict[str, bool] = {}
    before, begins = "", True
    for chunk in (_PADDING.sub(" ", text) if "sure" in text else text).split():
        for word, is_mark in _read(chunk):
            if word == "a" and begins:  # an article; elsewhere a capital names something
                continue
            told[word] = told.get(word, False) or is_mark
            if word in _PLACES and before in _SOMETIMES_ENVIRONMENTS:
                told[before] = True
            before = word
        begins = not chunk[-1].isalnum() and chunk[-1] not in _INSIDE
    return Gist(frozenset(word for word, is_mark in told.items() if is_mark), tuple(told))


@lru_cache(8_192)
def _read(chunk: str) -> tuple[tuple[str, bool], ...]:
    """The words of a text without spaces as they are compared, each with whether it is a mark."""
    return tuple(word for word in map(_compared, _WORD.findall(chunk)) if word[0])


def _compared(raw: str) -> tuple[str, bool]:
    word = raw.casefold().replace("’", "'").removesuffix("'s")
    if word.endswith("n't"):
        return "not", True
    if raw in _NAMES:
        return word, True
    if _IDENTIFIER.search(raw.removesuffix("'s")):
        return word, True
    stem = _stem(word)
    mark = _MARKS.get(word) or _MARKS.get(stem)
    if mark:
        return mark, True
    return ("" if word in STOP_WORDS or stem in _FILLER_STEMS else stem), False


def _rotated(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether ``other`` is ``one`` with its beginning moved to the end. No word occurs twice."""
    at = other.index(one[0])
    return other[at:] + other[:at] == one
