"""Making stored text inert: what leaves this product is data and can neither act nor disguise itself (P4). Pure.

Two audiences: ``inert`` for what a model reads (escaped, so that nothing can close or forge the wrapper),
``printable`` for a person's terminal (cleaned, not escaped). Knows nothing about cards or tools.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

OPEN = '<project-memory advisory="untrusted">'
CLOSE = "</project-memory>"
ESCAPED = "In it `&lt;` stands for a less-than sign and `&amp;` for an ampersand."
"""What a reader of escaped text is told, once an answer, or code would be copied with the entities. Without a ``<``."""
FIELD_CHARS = 400
"""A field is longer than this only by what escaping adds."""
HINT_CHARS = 1_000
"""As much of a sentence that says what to do: a command in it may name two folders."""

# Characters that read as "<" or "&", or become one that does under NFKC or NFKD: full-width, small and vertical
# forms, angle quotation marks and brackets, modifier letters, runes, Canadian syllabics, order relations.
_LIKE_LESS_THAN = "[＜﹤‹\u2329⟨〈︿❬❮⧼ᐸᚲ˂𐊆⋖≺⊀≮⩹⪪⋞𝈶]"
_LIKE_AMPERSAND = "[＆﹠]"

_compiled = cache(re.compile)
"""Patterns that most texts never meet are compiled when one does: a hook starts in 5 ms less."""

_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Escape sequences (ECMA-48): CSI; the strings OSC, DCS, APC, PM and SOS, up to their terminator on the same line;
# then any other escape, and the bare introducer of a string that does not end.
_ANSI = (
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x1b\x90\x98\x9c-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?:[ -/]{0,2}[0-~])?"
)
# C0, C1 and every format character (bidi, zero-width, tags), then what is invisible without being one: fillers,
# the grapheme joiner, variation selectors, the braille blank, the empty notehead, ignorable code points.
_INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U00016fe4\U0001d159"
)
_HIDDEN = f"[{_INVISIBLE}]"
_EMOJI = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
# What holds an ordinary emoji together: its style mark, the joiner between two, the mark inside a keycap.
_EMOJI_GLUE = rf"(?<=[{_EMOJI}])\ufe0f(?:\u200d(?=[{_EMOJI}]))?|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])|\ufe0f(?=\u20e3)"
_SURROGATE = "[\ud800-\udfff]"
_LINE_BREAK = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"
_UNCLEAN = f"[{_INVISIBLE}\u2028\u2029\ud800-\udfff]"


def _broken(word: str) -> str:
    """A pattern for ``word`` with tabs and newlines in it, which browsers ignore inside a URL's scheme."""
    return r"[\t\n]*".join(word)


_COLON = r"\s*(?:[:：﹕]|&(?:colon|#0*58|#x0*3a);)"
_SCRIPT = (
    rf"(?i)\b(?:{_broken('javascript')}|{_broken('vbscript')})(?={_COLON})"
    rf"|\bdata(?={_COLON}\s*(?:text/html|image/svg|application/xhtml))"
)
_LINK = r"(?i)!\[|\b(?:https?|ftp|wss?)://|\b(?:src|href)\s*=\s*[\"']?//|\]\(\s*//"
_IMAGE = r"!(?=\[)"
# What every _SCRIPT, every _LINK contains: most texts hold neither, and are spared the slow searches.
_SCRIPT_END = re.compile(r"[TtAa]\s*[:：﹕&]")
_LINK_MARKS = ("//", "![")


class Inert(NamedTuple):
    """Text that is safe to hand over, and what was found in it."""

    text: str
    hidden_removed: int
    external_url: bool


def printable(text: str) -> tuple[str, int]:
    """Text without control, ANSI, bidi, zero-width, tag and variation characters, and how many were removed.

    Newlines and tabs stay; every other line break (CR, VT, FF, U+0085, U+2028, U+2029) becomes a newline. A lone
    surrogate becomes U+FFFD. What glues an emoji together goes too, but is not counted: it hides nothing.
    """
    if (_ASCII_CONTROL if text.isascii() else _compiled(_UNCLEAN)).search(text) is None:
        return text, 0
    text = _compiled(_EMOJI_GLUE).sub("", _compiled(_SURROGATE).sub("\ufffd", _compiled(_LINE_BREAK).sub("\n", text)))
    visible = _compiled(_HIDDEN).sub("", _compiled(_ANSI).sub("", text))
    return visible, len(text) - len(visible)


def inert(text: str) -> Inert:
    """Cleaned, escaped and defanged: no tag can be opened or closed, no image loads, no script URL runs.

    ``&``, ``<`` and their look-alikes become entities; ``![`` becomes ``! [``; the scheme of a script URL is
    parted from its colon (``javascript :``).
    """
    visible, removed = printable(text)
    linked = any(mark in visible for mark in _LINK_MARKS) and _compiled(_LINK).search(visible) is not None
    scripted = _SCRIPT_END.search(visible) is not None and _compiled(_SCRIPT).search(visible) is not None
    if linked:
        visible = _compiled(_IMAGE).sub("! ", visible)
    if scripted:
        visible = _compiled(_SCRIPT).sub(r"\g<0> ", visible)
    return Inert(_escaped(visible), removed, linked or scripted)


def _escaped(text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;")
    return (
        plain
        if plain.isascii()
        else _compiled(_LIKE_AMPERSAND).sub("&amp;", _compiled(_LIKE_LESS_THAN).sub("&lt;", plain))
    )


def telling(guidance: str, texts: Iterable[str]) -> str:
    """The guidance of an answer that shows these inert texts; with ``ESCAPED`` where one of them holds an escape."""
    held = any("&lt;" in text or "&amp;" in text for text in texts)
    return f"{guidance} {ESCAPED}" if held else guidance


def wrap(safe: Inert) -> str:
    """The one advisory wrapper (P4): exactly one opening and one closing tag.

    A text that begins with a combining mark gets a dotted circle to carry it, or the mark would change the tag's
    own ``>`` (U+0338 makes it U+226F under NFKC).
    """
    carrier = "\u25cc" if unicodedata.category(safe.text[:1] or "x").startswith("M") else ""
    return f"{OPEN}{carrier}{safe.text}{CLOSE}"


@lru_cache(1_024)
def field(text: str, limit: int = FIELD_CHARS) -> str:
    """A stored string outside the wrapper: one line, cleaned and escaped, cut at ``limit`` characters."""
    line = " ".join(printable(text[: 4 * limit])[0].split())
    return inert(line if len(line) <= limit else line[: limit - 1] + "…").text
