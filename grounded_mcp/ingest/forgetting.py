"""Forgetting: an item goes with everything that was made from it, and does not come back from its source (case 61).

To delete leaves no byte of the text. To retire keeps it, with the reason, as history that no search finds. A tombstone
is a keyed digest of an item's id and, for a file that may be written anew, of its content: it says nothing to anyone
who does not have the text already.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from grounded_mcp.errors import InputError
from grounded_mcp.outcomes import Forgotten
from grounded_mcp.stores.base import MAX_BATCH, Store
from grounded_mcp.values import Clean, Item, Kind, Passage, Record
from grounded_mcp.when import iso

_MADE: tuple[Kind, ...] = ("episode", "digest")
_RETIRED: tuple[Kind, ...] = ("fact", "learning", "script", "episode")
_DERIVED: tuple[Kind, ...] = ("script", "episode")
SECRET = "tombstones"  # noqa: S105 - the name of the key, not the key
KEYS = "tombstone-keys"
"""The checkpoint that names the keys of other stores, by which imported tombstones are made."""
MAX_HISTORY = 1_000


@dataclass(frozen=True, slots=True)
class Tombstones:
    """What must not come back. ``key``: the store's own secret; ``buried``: as ``Store.buried`` gives it.

    ``others``: the keys of stores whose tombstones were imported."""

    key: bytes
    buried: frozenset[str]
    others: tuple[bytes, ...] = ()

    def digest(self, item_id: str, content: str = "") -> str:
        """A tombstone for an item, or for one content of it."""
        return _digest(self.key, item_id, content)

    def has(self, item_id: str, content: str = "") -> bool:
        return any(_digest(key, item_id, content) in self.buried for key in (self.key, *self.others))

    def of(self, item: Item) -> str:
        """The tombstone of an item: a document may come back once it says something else."""
        return self.digest(item.id, _content(item))

    def holds(self, item: Item) -> bool:
        """Whether an item as it is was forgotten."""
        return self.has(item.id, _content(item))


def _content(item: Item) -> str:
    return item.content_hash if item.kind == "doc" else ""


def _digest(key: bytes, item_id: str, content: str) -> str:
    return hmac.new(key, f"{item_id}\0{content}".encode("utf-8", "surrogatepass"), sha256).hexdigest()


def tombstones(store: Store) -> Tombstones:
    others = store.checkpoints(KEYS).get(KEYS, "").split()
    return Tombstones(store.secret(SECRET), store.buried(), tuple(store.secret(f"{SECRET}:{name}") for name in others))


def forget(store: Store, *ids: str) -> Forgotten:
    """Delete items from the table, every index and the files, with what they had replaced and what was made from them.

    All in one transaction. Their sources are left alone. Raises: NotFound, with nothing deleted; StoreError.
    """
    items = tuple(store.item(item_id)[0] for item_id in dict.fromkeys(ids))
    chosen = {item.id for item in items}
    others = tuple(dict.fromkeys(other for item in items for other in _gone_with(store, item) if other not in chosen))
    stones = tombstones(store)
    bury = [stones.of(item) for item in items] + [stones.digest(other) for other in others]
    store.delete([*chosen, *others], bury=bury)
    return Forgotten("delete", items, others)


def _gone_with(store: Store, item: Item) -> Iterator[str]:
    """Without the item nothing leads to what it replaced."""
    yield from (old.id for old in store.history(item.id, MAX_HISTORY))
    if item.kind == "session":
        for kind in _MADE:
            for known in store.known(kind, item.scope).values():
                if item.id in known.attrs.get("session", "").split("\n"):
                    yield known.id


def retire(store: Store, ids: Sequence[str], copies: Sequence[str], reason: Clean, now: float) -> Forgotten:
    """Take items out of every index as wrong or outdated; their text, evidence and ``reason`` stay as history.

    ``copies`` go with them, all in one transaction. What was mined from sessions does not come back from these.
    Raises: NotFound; InputError for what has its source elsewhere; StoreError. Then nothing was changed.
    """
    chosen = tuple(dict.fromkeys(ids))
    found = {item_id: store.item(item_id) for item_id in (*chosen, *copies)}
    for item, _ in found.values():
        _check_retirable(item)
    active = {item_id: each for item_id, each in found.items() if each[0].state != "superseded"}
    store.save([_retired(item, passages, reason, now) for item, passages in active.values()])
    stones = tombstones(store)
    derived = [stones.of(item) for item, _ in active.values() if item.kind in _DERIVED]
    if derived:
        store.delete([], bury=derived)
    return Forgotten(
        "retire",
        tuple(active[item_id][0] for item_id in chosen if item_id in active),
        others=tuple(item_id for item_id in active if item_id not in chosen),
        unchanged=tuple(item_id for item_id in chosen if item_id not in active),
    )


def check_count(ids: Sequence[str]) -> None:
    """Raises: InputError for none, or for more than one transaction takes."""
    if not 0 < len(ids) <= MAX_BATCH:
        raise InputError("id", f"{len(ids)} ids are given.", f"Give 1 to {MAX_BATCH}.")


def _check_retirable(item: Item) -> None:
    if item.kind not in _RETIRED:
        raise InputError(
            "action",
            f"{item.id} is a {item.kind}: it says what its source says, and cannot be retired.",
            "Delete it, or correct its source; to correct what it says, use remember_fact or record_learning.",
        )


def _retired(item: Item, passages: Sequence[Passage], reason: Clean, now: float) -> Record:
    text = item.body if item.body is not None else Clean("".join(passage.body for passage in passages))
    attrs = {**item.attrs, "retired": iso(now), **({"reason": reason} if reason else {})}
    return Record(replace(item, state="superseded", body=text, attrs=attrs))
