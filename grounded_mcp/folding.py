"""How a text is read for its words: folded first, so that spellings meet, and then cut by one pattern.

Apart from ``tokens`` because what only looks for names in a text, as a hook does, starts in half the time without the
rest of the analyzer. Pure: strings in, strings out. Knows nothing about index tokens or what a word means.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

HASH_HEAD = 7
"""Characters of the shortest abbreviation that git prints by default."""

STOP_WORDS = frozenset(
    """a about am an and any are as at be been being but by can could did do does doing done for from had has have
    how i if in into is it its it's me my of on or our please shall should so some than that that's the their them
    then there there's these they this those to us was we were what what's when where which who whom whose why
    will with would you your""".split()  # noqa: SIM905 - a list literal would take 75 lines
)
"""What a query leaves out while it has anything else; the index keeps every word. ``not``, ``no``, ``go`` and
single letters but ``a`` and ``i`` are not here: whoever types them means them."""

# Scripts written without spaces: Thai, Lao, Burmese, Khmer, Hangul, kana, bopomofo, Han.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3038-\u303b\u3041-\u309f\u30a1-\u30fa\u30fc-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Indic, Thaana and Tibetan signs, which stand inside words although `\w` leaves many of them out.
SIGNS = "\u07a6-\u07b0\u0900-\u0963\u0971-\u0df3\u0f71-\u0f84\u0f8d-\u0fbc"
# Accents and points that readers leave out when they search: Latin, Greek, Cyrillic, Hebrew, Arabic.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    "\u0670\u06d6-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
# Characters without a shape of their own (soft hyphen, zero width, bidi, fillers, variation selectors, tags).
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)
_ALIKE = str.maketrans("\u2019\u02bc\u2010\u2212", "''--")


def _word_pattern(letters: str, otherwise: str = "") -> re.Pattern[str]:
    """A chain of more than 32 segments is cut into several words, which keeps the work for one word bounded."""
    connector = r"(?:'|::|->|:?[\\/]{1,3}[.@]?|[-.:@\#])"
    return re.compile(
        rf"""{otherwise}(?:(?<![\w)\]}}>?.@\#$\-])(?:--?(?=[A-Za-z])|[.@\#]|\$\{{?))?
             {letters}(?:{connector}{letters}){{0,31}}(?:\+\+\d*|\#(?!\w))?""",
        re.VERBOSE,
    )


_ASCII_WORD = _word_pattern("[A-Za-z0-9_]+")


def fold(text: str) -> str:
    """The text as words are looked for in it: compatibility forms, no accents, nothing unseen; case is kept."""
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", _UNSEEN.sub("", text)))
    return unicodedata.normalize("NFC", plain).translate(_ALIKE)


def words(folded: str) -> re.Pattern[str]:
    """The pattern that finds the words of a folded text: two patterns that agree, one of them fast."""
    return _ASCII_WORD if folded.isascii() else _any_word()


@cache
def _any_word() -> re.Pattern[str]:
    return _word_pattern(rf"(?:[^\W{UNSPACED}]|[{SIGNS}])+", f"[{UNSPACED}]+|")
