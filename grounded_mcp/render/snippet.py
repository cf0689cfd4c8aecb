"""The part of a passage that a card shows: where the matched words stand closest together. Pure.

Knows nothing about cards, escaping or budgets; lengths are characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

MAX_WORDS = 12
"""Matched words that are looked for, the first ones of the query."""
MAX_SPOTS = 16
"""Places looked at per word; a word that stands everywhere tells nothing about where to cut."""


def cut_around(text: str, words: Sequence[str], length: int) -> str:
    """At most ``length`` characters of ``text``, where most of ``words`` are in view; the beginning if it is as good.

    Starts at a line, a sentence or at least a word; "…" marks what was cut off on either side.
    """
    text = text.strip()
    if len(text) <= length:
        return text
    start = _start(text, _spots(text, words), length)
    ahead = "…" if start else ""
    if len(text) - start <= length - len(ahead):
        return ahead + text[start:]
    end = start + length - len(ahead) - 1
    return f"{ahead}{text[start : _word_end(text, start, end)].rstrip()}…"


def _start(text: str, spots: Sequence[tuple[int, int]], length: int) -> int:
    """Where the best window begins: the first of those that hold the most different words."""
    lead = length // 4

    def words_within(start: int) -> int:
        return len({word for at, word in spots if start <= at < start + length - lead // 2})

    best, most = 0, words_within(0)
    for at, _ in spots:
        begin = max(0, at - lead)
        if (count := words_within(begin)) > most:
            best, most = begin, count
    if not best:
        return 0
    best = min(best, len(text) - length + 1)  # near the end: use all the room
    return _break_after(text, best, min(best + lead, len(text) - 1))


def _break_after(text: str, start: int, limit: int) -> int:
    """The first line, sentence or word that begins in ``text[start:limit]``."""
    for mark in ("\n", ". ", " "):
        at = text.find(mark, start - 1, limit)
        if at >= 0:
            return len(text) - len(text[at + len(mark) :].lstrip())
    return start


def _word_end(text: str, start: int, end: int) -> int:
    """``end``, moved back to the end of a word unless that is far away."""
    at = max(text.rfind(" ", start, end + 1), text.rfind("\n", start, end + 1))
    return at if at > end - 24 and at > start else end


def _spots(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """(place, number of the word) for each place where a word begins, in order.

    A word that is nowhere is looked for by its beginning (the passage has another form of it), then inside words.
    """
    low = text.lower()
    low = low if len(low) == len(text) else text  # a letter that grows in lower case would shift every place
    spots = []
    for number, word in enumerate(words[:MAX_WORDS]):
        needle = word.lower()
        head = needle[: max(4, len(needle) - 3)]
        found = _beginnings(low, needle) or _beginnings(low, head) or [low.find(needle)]
        spots += [(at, number) for at in found if at >= 0]
    return sorted(spots)


def _beginnings(low: str, needle: str) -> list[int]:
    return list(islice((at for at in _places(low, needle) if at == 0 or not _joins(low[at - 1], needle)), MAX_SPOTS))


def _joins(before: str, needle: str) -> bool:
    """Whether a letter in front makes the needle the inside of a word; scripts without spaces have no inside."""
    return before.isalnum() and needle[0].isascii()


def _places(low: str, needle: str) -> Iterator[int]:
    at = low.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = low.find(needle, at + len(needle))
