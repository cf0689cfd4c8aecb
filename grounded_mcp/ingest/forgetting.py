"""Forgetting: an item goes with everything that was made from it, and does not come back from its source (case 61).

A tombstone is a keyed digest of an item's id and, for a file that may be written anew, of its content: it says nothing
to anyone who does not have the text already.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from grounded_mcp.stores.base import Store
from grounded_mcp.values import Item, Kind

_MADE: tuple[Kind, ...] = ("episode", "digest")
SECRET = "tombstones"  # noqa: S105 - the name of the key, not the key


@dataclass(frozen=True, slots=True)
class Tombstones:
    """What must not come back. ``key``: the store's own secret; ``buried``: as ``Store.buried`` gives it."""

    key: bytes
    buried: frozenset[str]

    def digest(self, item_id: str, content: str = "") -> str:
        """A tombstone for an item, or for one content of it."""
        return hmac.new(self.key, f"{item_id}\0{content}".encode("utf-8", "surrogatepass"), sha256).hexdigest()

    def has(self, item_id: str, content: str = "") -> bool:
        return self.digest(item_id, content) in self.buried


def tombstones(store: Store) -> Tombstones:
    return Tombstones(store.secret(SECRET), store.buried())


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted: the item, and what had been made from it."""

    item: Item
    others: tuple[str, ...] = ()


def forget(store: Store, item_id: str) -> Forgotten:
    """Delete an item from the table, every index and the files, with the episodes and digests made from it.

    Its source is left alone. Raises: NotFound; StoreError.
    """
    item, _ = store.item(item_id)
    others = tuple(_made_from(store, item)) if item.kind == "session" else ()
    content = item.content_hash if item.kind == "doc" else ""
    store.delete([item.id, *others], bury=[tombstones(store).digest(item.id, content)])
    return Forgotten(item, others)


def _made_from(store: Store, session: Item) -> Iterator[str]:
    for kind in _MADE:
        for known in store.known(kind, session.scope).values():
            if session.id in known.attrs.get("session", "").split("\n"):
                yield known.id
