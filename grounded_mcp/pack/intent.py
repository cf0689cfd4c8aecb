"""What a task is about: what is true now, why something was decided, or both (C1). Pure.

=====================  ===============================================================================
intent                 when (the page "How retrieval works", "How a context pack is built")
=====================  ===============================================================================
``current_truth``      the task asks what is true now
``reasoning_archive``  the task asks why something was decided
``blended``            both, or neither
=====================  ===============================================================================

Decided by words, and the words are told. Knows nothing about what is found.
"""

from __future__ import annotations

import re

from grounded_mcp.packing import PackIntent, Read

_WHY = re.compile(
    r"\b(?:why|reason(?:s|ing|ed)?|rationale|decid(?:e|ed|ing)|decisions?|chose(?:n)?|choos(?:e|ing)|choice"
    r"|motivat(?:ion|ed)|trade-?offs?|alternatives?|instead of|rejected|ruled out|argued|discuss(?:ed|ion)s?|debated"
    r"|agreed|thinking behind|how come|history of|background|considered|warum|wieso|weshalb|pourquoi|por qué)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:now|current(?:ly)?|today|latest|at present|as of|still|up to date|status|state of|is there|are there"
    r"|which (?:version|port|file|branch|command|setting|value)s?|what (?:is|are)|where (?:is|are|does|do)"
    r"|how (?:do|does|to|is|are|can)|does|list|show me|active|enabled|running|default(?:s)?|configured|deployed"
    r"|implement(?:ed|s|ing)?|fix(?:ing)?|add(?:ing)?|change|changing|update|run|test|build|install"
    r"|jetzt|aktuell|derzeit|maintenant|actuel(?:lement)?|ahora|actual(?:mente)?)\b",
    re.IGNORECASE,
)


def read_intent(task: str) -> Read:
    """The intent of a task, with the words that decided it, in lower case, in their order."""
    why, now = _found(_WHY, task), _found(_NOW, task)
    if why and now and not _asks_why(task):
        return Read("blended", why + now)
    if why:
        return Read("reasoning_archive", why)
    return Read("current_truth", now) if now else Read("blended", ())


def given(intent: PackIntent) -> Read:
    """An intent that the caller named: no word decided it."""
    return Read(intent, ())


_FIRST = re.compile(
    r"\W*(?:(?:please|and|so|tell me|explain|remind me)\W+)*(?:why|how come|warum|pourquoi|por qué)\b", re.I
)


def _asks_why(task: str) -> bool:
    """A question that begins with why asks why, whatever else it mentions: "why does the test fail now"."""
    return _FIRST.match(task) is not None


def _found(pattern: re.Pattern[str], task: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.group().lower() for match in pattern.finditer(task)))
