"""What stands near a claim in the memory: its copies, which a correction takes along, and what cannot hold beside it.

Looks at active facts and learnings of one scope that share words with the claim, found by keyword search, so that it
works without a model and costs the same in a large memory. Knows nothing about why anyone asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, get_args

from grounded_mcp.errors import InputError
from grounded_mcp.ingest.forgetting import check_count, forget, retire
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.knowledge.conflicts import clashing, said
from grounded_mcp.outcomes import Forgetting, Forgotten
from grounded_mcp.recall.gist import gist
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Filter, Item, Kind

CLAIMS: frozenset[Kind] = frozenset({"fact", "learning"})
LEARNINGS: frozenset[Kind] = frozenset({"learning"})
DOCUMENTS: frozenset[Kind] = frozenset({"doc"})
NEAR = 200
"""Passages that are looked at: what says the same shares its words, and so is among the best hits."""


ACTIONS: Final[tuple[Forgetting, ...]] = get_args(Forgetting)
MAX_REASON = 1_000
"""Characters of a reason that are kept."""


class Words(Protocol):
    """What is needed of an analyzer: the terms to look a text's words up by."""

    def query(self, text: str) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Claims:
    """The facts and learnings of a store. ``extra_words``: as for ``Gist.same_as``, how much longer a copy may be."""

    store: Store
    analyzer: Words
    extra_words: int

    def near(self, text: str, scope: str, kinds: frozenset[Kind] = CLAIMS) -> tuple[Item, ...]:
        """What shares words with a text, best first."""
        where = Filter(kinds, frozenset({scope}))
        hits = self.store.lexical(self.analyzer.query(text), where, NEAR)
        found = self.store.fetch([hit.passage for hit in hits])
        return tuple({each.item.id: each.item for each in found.values()}.values())

    def same(self, text: str, scope: str, kinds: frozenset[Kind] = CLAIMS) -> Item | None:
        """The best that says exactly the same, if any does."""
        told = gist(text)
        return next((item for item in self.near(text, scope, kinds) if gist(text_of(item)).same_as(told, 0)), None)

    def copies(self, item: Item) -> tuple[Item, ...]:
        """What says the same as an item does, but for itself.

        A fact with a topic key of its own is nobody's copy: "port is 8090" may be said of several things.
        """
        told = gist(text_of(item))
        return tuple(
            other
            for other in self.near(text_of(item), item.scope)
            if other.id != item.id
            and (other.kind != "fact" or other.key in (None, item.key))
            and gist(text_of(other)).same_as(told, self.extra_words)
        )

    def conflicts(self, text: str, scope: str, but: Collection[str]) -> tuple[Item, ...]:
        """What cannot hold beside a text; ``but``: ids of what it takes the place of, and its own."""
        told = said(text)
        near = self.near(text, scope)
        return tuple(item for item in near if item.id not in but and clashing(told, said(text_of(item))))

    def beside(self, item: Item, replaced: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
        """Of a fact that is about to be stored: the copies of what it replaces, and its conflicts."""
        copies = {each.id: each for old in replaced for each in self.copies(old)}
        for each in (item, *replaced):
            copies.pop(each.id, None)
        gone = {item.id, *ids_of(replaced), *copies}
        return tuple(copies.values()), self.conflicts(text_of(item), item.scope, gone)


def let_go(claims: Claims, ids: Sequence[str], action: str, reason: str, redactor: Redactor, now: float) -> Forgotten:
    """Delete or retire items; a claim is retired with its copies, and a deleted one's are named.

    Raises: InputError for another action, or a kind that cannot be retired; NotFound; RedactionError; StoreError: then
    nothing was changed.
    """
    check_count(ids)
    if action not in ACTIONS:
        raise InputError("action", f"{action[:40]!r} is not usable.", f"Give one of {', '.join(ACTIONS)}.")
    why = redactor.clean(reason.strip()[:MAX_REASON]).text
    found = [item for item in (claims.store.item(item_id)[0] for item_id in ids) if item.state != "superseded"]
    copies = [copy for item in found if item.kind in CLAIMS for copy in claims.copies(item) if copy.id not in ids]
    if action == "retire":
        return retire(claims.store, ids, tuple(dict.fromkeys(ids_of(copies))), why, now)
    gone = forget(claims.store, *ids)
    return replace(gone, alike=tuple(dict.fromkeys(ids_of(each for each in copies if each.id not in gone.others))))


def text_of(item: Item) -> str:
    """Facts and learnings are kept whole."""
    return item.body if item.body is not None else item.title


def ids_of(items: Iterable[Item]) -> tuple[str, ...]:
    return tuple(item.id for item in items)
