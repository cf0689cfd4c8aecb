"""Opening a memory: from a pointer to its full text, page by page, with where it came from. Pure.

A pointer is an item's id, or ``id#n`` for its n-th passage. Knows nothing about how text is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from grounded_mcp.errors import InputError
from grounded_mcp.values import Evidence, Item, Passage


class Seen(NamedTuple):
    """One piece of evidence, with a pointer to the passage where it was seen, and whose conversation that is."""

    evidence: Evidence
    pointer: str = ""
    """Empty where no stored conversation is its source: a caller stated it, or the conversation was forgotten."""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Why an item is known. ``evidence``: the newest pieces of all that ``supports`` and ``against`` count."""

    evidence: tuple[Seen, ...] = ()
    supports: int = 0
    against: int = 0
    sources: tuple[str, ...] = ()
    """Pointers to the conversations that it was made from."""
    conflicts: tuple[Item, ...] = ()
    """What cannot hold beside it."""
    successor: Item | None = None
    """What took its place, where it was superseded."""


@dataclass(frozen=True, slots=True)
class Opened:
    """One page of an item's text. The offsets count characters from its beginning."""

    item: Item
    text: str
    offset: int
    next_offset: int | None
    prev_offset: int | None
    size: int
    passages: int
    heading: str
    start_line: int | None
    neighbours: tuple[Passage, ...] = ()
    """The passages before and after the one that the page begins in."""
    history: tuple[Item, ...] = ()
    """What this fact or learning replaced, newest first."""
    provenance: Provenance = Provenance()
    disk: str | None = None
    """``changed`` or ``missing``: a document's file now, where it is not as it was indexed."""


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
    provenance: Provenance = Provenance(),
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
    at = _place(passages, start)
    here = passages[at] if at < len(passages) else None
    return Opened(
        item=item,
        text=text[start:end],
        offset=start,
        next_offset=end if end < len(text) else None,
        prev_offset=max(0, start - chars) if start else None,
        size=len(text),
        passages=len(passages),
        heading=here.heading if here else "",
        start_line=here.start_line if here else None,
        neighbours=tuple(passages[near] for near in (at - 1, at + 1) if 0 <= near < len(passages)),
        history=tuple(history),
        provenance=provenance,
    )


def _place(passages: Sequence[Passage], offset: int) -> int:
    """The index of the passage that holds ``offset``; their number where none does."""
    position = 0
    for place, passage in enumerate(passages):
        position += len(passage.body)
        if offset < position:
            return place
    return len(passages)
