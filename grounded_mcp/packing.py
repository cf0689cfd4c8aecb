"""What a context pack is, as data: items by section, each with its trust, and the files that would settle the task.

Pure. Knows nothing about how it is made or shown. Source of the levels, intents and the caveat: the page "How
retrieval works", "How a context pack is built".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

from grounded_mcp.values import Candidate, Kind, Recall

PackIntent = Literal["current_truth", "reasoning_archive", "blended"]
Trust = Literal["live_state", "tracker", "committed_doc", "discussion", "discounted"]
Section = Literal["current_truth", "decisions", "examples", "past_reasoning", "discounted"]
OnDisk = Literal["as indexed", "changed", "missing", "unknown"]

PACK_INTENTS: tuple[PackIntent, ...] = get_args(PackIntent)
DETAILS = ("normal", "full")
TRUST: tuple[Trust, ...] = get_args(Trust)
"""Most trusted first."""
SECTIONS: tuple[Section, ...] = get_args(Section)

CAVEAT = "tracker-backed, not live-verified"
"""What a pack says that has no live state to stand on."""


class Read(NamedTuple):
    """A task's intent, and the words that decided it; none where it was given or nothing decided."""

    intent: PackIntent
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackItem:
    """One result, with what it is and how far it goes."""

    candidate: Candidate
    trust: Trust
    because: str
    """The rule that decided the trust."""
    matched: int
    asked: int
    """Of so many different words of the task, ``matched`` are in the passage."""
    similarity: float
    disk: OnDisk | None = None
    """The file now, against what was indexed; None for what is no file."""
    decided: float | None = None
    """When the decision in it was made, for an item of that section, where that is known."""


class ReadFirst(NamedTuple):
    """A file that would settle the task. ``line``: where, from 1."""

    item: str
    path: str
    line: int | None
    why: str
    disk: OnDisk


class Nearest(NamedTuple):
    """A pointer to what came closest where nothing is near enough; of a document with ``path`` and ``line``, from 1."""

    pointer: str
    kind: Kind
    path: str = ""
    line: int | None = None


class Disagreement(NamedTuple):
    """Something said in one place that another does not bear out: an item, what it says, and what speaks against it."""

    item: str
    says: str
    against: str


@dataclass(frozen=True, slots=True)
class Pack:
    """The answer of ``context_pack``."""

    task: str
    read: Read
    recall: Recall
    """The search behind it, with all its candidates."""
    sections: Mapping[Section, tuple[PackItem, ...]]
    read_first: tuple[ReadFirst, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    archive: str | None = None
    """Why archived sessions were searched, where they were."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Items that are not in the pack, by why."""
    nearest: tuple[Nearest, ...] = ()
    """Of an empty pack: what came closest, an item once, the closest first."""

    @property
    def shown(self) -> Recall:
        """The search with the items that are in the pack, in their sections' order: what a journal notes."""
        return replace(
            self.recall, candidates=tuple(item.candidate for items in self.sections.values() for item in items)
        )

    @property
    def caveat(self) -> str | None:
        """What the pack cannot stand on; None where live state is in it, or nothing at all."""
        items = [item for section in self.sections.values() for item in section]
        return CAVEAT if items and not any(item.trust == "live_state" for item in items) else None
