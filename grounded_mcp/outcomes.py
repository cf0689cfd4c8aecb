"""What a write did, as it is told to whoever asked for it: what became of a fact, a claim, of items let go. Pure.

Knows nothing about how it was decided or how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from grounded_mcp.values import Item

Forgetting = Literal["delete", "retire"]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What happened to a stated fact."""

    item: Item
    outcome: Literal["stored", "updated", "unchanged"]
    superseded: tuple[str, ...] = ()
    """Ids of what this one replaced, copies included; they stay readable as history."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Secrets taken out of the text and the topic key, by kind."""
    vector: Literal["pending", "off"] = "off"
    """Keyword search finds the fact at once; its vector follows (I2), unless vectors are off."""
    conflicts: tuple[Item, ...] = ()
    """Active facts and learnings that cannot hold beside it."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of a claim. ``item`` is None where it was rejected; then ``reason`` says why.

    ``merged``: the memory holds the claim already, and what was seen now is one more piece of evidence for or against.
    """

    outcome: Literal["stored", "merged", "rejected"]
    item: Item | None = None
    reason: str = ""
    pointer: str = ""
    """What says the same already, where that is why it was rejected."""
    support_count: int = 0
    contradiction_count: int = 0
    supported: tuple[str, ...] = ()
    """Ids of the other claims that got this as evidence; ``contradicted`` likewise."""
    contradicted: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    """Ids of the claims that this one corrects, with their copies. They stay readable as history."""
    scripts: tuple[str, ...] = ()
    """Ids of the scripts that it is now evidence for: what it was shown by."""
    conflicts: tuple[Item, ...] = ()
    """Active facts and learnings that cannot hold beside it."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    vector: Literal["pending", "off"] = "off"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Items that were let go: deleted for good, or retired, which leaves them readable by their ids only.

    ``others`` went with them: what had been made from them, what they had replaced, and, of retired claims, their
    copies. ``alike``: what still says the same as a deleted claim.
    """

    action: Forgetting
    items: tuple[Item, ...]
    others: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Ids of items that were retired before."""
    alike: tuple[str, ...] = ()
