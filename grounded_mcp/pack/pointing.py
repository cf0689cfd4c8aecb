"""Where in a file to begin reading: the line of a passage that says most about a task. Pure.

Knows nothing about files or stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from grounded_mcp.values import Passage

_DEFINES = re.compile(
    r"^\s*(?:export\s+|public\s+|private\s+|static\s+|async\s+|pub\s+|default\s+)*"
    r"(?:def|class|function|func|fn|interface|type|struct|enum|trait|impl|module|const|let|var|val)\s+[\w$]+"
    r"|^\s*(?:[A-Z][A-Z0-9_]+|[\w.-]+)\s*[:=]|^\[[^\]]+\]|^#+\s"
)
_SETS = re.compile(
    r"""^\s*(?:export\s+|const\s+|let\s+|var\s+|val\s+|-\s+)*["']?[\w.$-]+["']?"""
    r"""(?:\s*:\s*[\w\[\], .|]{1,60}?)?\s*(?::=|[:=])\s*"""
    r"""(?:[-+]?\d|["'\[{(]|(?:true|false|null|none|yes|no|on|off)\b)""",
    re.IGNORECASE,
)
"""A name with a plain value: what is computed (``berth = pool.pop()``) sets nothing that a reader could take away."""

Words = Sequence[tuple[str, Sequence[str]]]
"""A task's words, each with its index terms: ``Recall.words``."""


class Line(NamedTuple):
    """A line of a file, counted from 1, and what it says."""

    number: int
    text: str


def line_of(passage: Passage, words: Words, index: Callable[[str], Iterable[str]]) -> Line | None:
    """The line of a passage that holds most of the words; of equal ones one that defines something, then the first.
    None for a passage without lines.

    A line that sets a value stands for its section: the words of the section's first line count for it, where it adds
    one of its own. It comes before a head that holds as many. ``index`` gives the index tokens of a text.
    """
    if passage.start_line is None:
        return None
    lines = passage.body.splitlines() or [""]
    held = [_held(line, words, index) for line in lines]
    head, best, most = held[0], 0, (0, 0)
    for number, (line, own) in enumerate(zip(lines, held, strict=True)):
        sets = _SETS.match(line) is not None
        count = len(own | head if sets and own - head else own)
        worth = (count, 2 if sets else 1 if _DEFINES.match(line) else 0)
        if count and worth > most:
            best, most = number, worth
    return Line(passage.start_line + best, lines[best])


def _held(line: str, words: Words, index: Callable[[str], Iterable[str]]) -> frozenset[str]:
    tokens = set(index(line))
    return frozenset(surface for surface, terms in words if not tokens.isdisjoint(terms))
