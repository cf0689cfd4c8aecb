"""Why is this known? A page of an item, with its evidence and the place each piece was seen at, as pointers.

Knows nothing about how that is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from grounded_mcp.errors import NotFound
from grounded_mcp.reading import Opened, Provenance, Seen, page, pointer
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Evidence, Item, Passage

MAX_EVIDENCE = 10
MAX_SOURCES = 10
MAX_CONFLICTS = 10
MAX_HISTORY = 20


def opened(store: Store, id: str, offset: int | None, chars: int) -> Opened:
    """One page of the full text behind a pointer. Raises: NotFound, InputError, StoreError."""
    item_id, seq = pointer(id)
    item, passages = store.item(item_id)
    history, known = store.history(item_id, MAX_HISTORY), provenance(store, item)
    return page(item, passages, seq=seq, offset=offset, chars=chars, history=history, provenance=known)


def provenance(store: Store, item: Item) -> Provenance:
    """What an item stands on, newest first, and what speaks against it. Raises: StoreError."""
    evidence = store.evidence(item.id)

    @cache
    def conversation(session: str) -> tuple[Item, tuple[Passage, ...]] | None:
        try:
            return store.item(session)
        except NotFound:
            return None

    def seen(each: Evidence) -> Seen:
        found = conversation(each.session)
        if found is None:
            return Seen(each)
        return Seen(each, nearest(found[0].id, found[1], each.at, each.place), found[0].attrs.get("agent", ""))

    return Provenance(
        evidence=tuple(map(seen, evidence[: -MAX_EVIDENCE - 1 : -1])),
        supports=sum(each.supports for each in evidence),
        against=sum(not each.supports for each in evidence),
        sources=tuple(_sources(store, item)),
        conflicts=store.conflicts([item.id]).get(item.id, ())[:MAX_CONFLICTS],
        successor=store.successor(item.id) if item.state == "superseded" else None,
    )


def _sources(store: Store, item: Item) -> Iterator[str]:
    """The conversations that an item was made from, at the exchange where that is known."""
    if item.kind not in ("episode", "digest"):
        return
    number = item.attrs.get("exchange", "")
    for session in item.attrs.get("session", "").split("\n")[:MAX_SOURCES]:
        try:
            found, passages = store.item(session)
        except NotFound:
            continue
        place = int(number) if number.isdecimal() else 0
        yield nearest(found.id, passages, item.updated_at, place) if place else found.id


def nearest(session: str, passages: Sequence[Passage], at: float, place: int) -> str:
    """A pointer to the passage that an exchange begins with: the last to begin by ``at``, else the ``place``-th.

    Exchanges are told apart by the turn that they begin with; ``place`` counts from 1.
    """
    begins = [each for n, each in enumerate(passages) if not n or each.start_line != passages[n - 1].start_line]
    timed = [each for each in begins if each.at is not None and each.at <= at]
    if timed:
        found = max(timed, key=lambda each: (each.at or 0.0, -each.seq))
    elif begins:
        found = begins[min(max(place, 1), len(begins)) - 1]
    else:
        return session
    return f"{session}#{found.seq}" if found.seq else session
