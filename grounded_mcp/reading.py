"""Opening a memory: from a pointer to its full text, page by page, with where it came from. Pure.

A pointer is an item's id, or ``id#n`` for its n-th passage. Knows nothing about how text is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grounded_mcp.errors import InputError
from grounded_mcp.values import Item, Passage


@dataclass(frozen=True, slots=True)
class Opened:
    """One page of an item's text. ``offset`` and ``next_offset`` count characters from its beginning."""

    item: Item
    text: str
    offset: int
    next_offset: int | None
    size: int
    passages: int
    heading: str
    start_line: int | None
    history: tuple[Item, ...] = ()
    """What this fact replaced, newest first."""


def pointer(text: str) -> tuple[str, int]:
    """``doc_1a2b#3`` -> (``doc_1a2b``, 3); without ``#n`` the first passage. Raises: InputError."""
    item_id, mark, number = text.strip().partition("#")
    if not item_id or (mark and not (number.isascii() and number.isdigit() and len(number) < 8)):
        raise InputError("id", f"{text[:60]!r} is not a pointer.", "Give the `open` value of a recalled card.")
    return item_id, int(number or 0)


def page(
    item: Item,
    passages: Sequence[Passage],
    *,
    seq: int,
    offset: int | None,
    chars: int,
    history: Sequence[Item] = (),
) -> Opened:
    """At most ``chars`` characters from ``offset``, or from the beginning of passage ``seq`` where it is None.

    Raises: InputError for a passage that is not there, or an offset beyond the end.
    """
    text = item.body if item.body is not None else "".join(passage.body for passage in passages)
    if seq and seq >= len(passages):
        raise InputError("id", f"{item.id} has no passage {seq}.", f"It has {len(passages)}, counted from 0.")
    start = sum(len(passage.body) for passage in passages[:seq]) if offset is None else offset
    if start < 0 or (start >= len(text) and start > 0):
        raise InputError("offset", f"{start} is outside the text.", f"It has {len(text):,} characters.")
    end = min(start + chars, len(text))
    at = _passage_at(passages, start)
    return Opened(
        item=item,
        text=text[start:end],
        offset=start,
        next_offset=end if end < len(text) else None,
        size=len(text),
        passages=len(passages),
        heading=at.heading if at else "",
        start_line=at.start_line if at else None,
        history=tuple(history),
    )


def _passage_at(passages: Sequence[Passage], offset: int) -> Passage | None:
    position = 0
    for passage in passages:
        position += len(passage.body)
        if offset < position:
            return passage
    return None
