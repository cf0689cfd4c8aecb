"""The one contract between the river and an engine: what a store must do, in about a dozen verbs.

A store owns rows, the full-text index and the vectors, and changes all three in one transaction. It returns
hits where higher is better; FTS5 signs, distances and driver exceptions stay inside. Two engines with the same content
give the same answers, to the last digit that counts. A store may be called from any thread. Every method raises only
``StoreError`` (or a subclass) and ``NotFound``. Knows nothing about ranking.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grounded_mcp.accounts import Noted, NotedItem, NotedRecall, NotedSession, RecalledItem, StoreInfo
from grounded_mcp.entities import EntityId
from grounded_mcp.events import Event
from grounded_mcp.foreground import Foreground, Most, Note, Weights
from grounded_mcp.values import (
    Evidence,
    EvidenceKind,
    Filter,
    Hit,
    Item,
    Kind,
    Passage,
    PassageId,
    Project,
    Record,
    SaveReport,
    ScopeFilter,
    Space,
    State,
    StoredPassage,
    Tally,
    Vector,
)

__all__ = [
    "MAX_BATCH",
    "Analyzer",
    "Known",
    "Noted",
    "NotedItem",
    "NotedRecall",
    "NotedSession",
    "PendingPassage",
    "RecalledItem",
    "RepairReport",
    "Space",
    "Store",
    "StoreInfo",
]

MAX_BATCH = 100
"""Most records one ``save`` takes: longer write transactions starve other processes (engine-facts 4a)."""


@dataclass(frozen=True, slots=True)
class PendingPassage:
    """A passage that waits for its vector, with the text to embed."""

    id: PassageId
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """What the store already holds under a key: enough to decide whether a file must be read again."""

    id: str
    key: str
    content_hash: str
    state: State
    created_at: float
    updated_at: float
    attrs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was wrong, what still is, and where the store as it was is kept."""

    found: tuple[str, ...]
    left: tuple[str, ...]
    kept: Path | None


class Analyzer(Protocol):
    """What a store needs of ``text.Analyzer``: the tokens to index a text by, and what to tell two analyzers by."""

    @property
    def fingerprint(self) -> str: ...

    def index(self, text: str) -> list[str]: ...


class Store(Protocol):
    """Rows, full text and vectors behind one door."""

    def save(
        self,
        records: Sequence[Record],
        *,
        supersede: Mapping[str, str] | None = None,
        retract: Mapping[str, int] | None = None,
        checkpoints: Mapping[str, str] | None = None,
        conflicts: Collection[tuple[str, str]] = (),
    ) -> SaveReport:
        """Add or replace whole records by ``item.id``, at most ``MAX_BATCH``, in one transaction.

        Unchanged passages keep their vectors; new ones start as ``pending`` (I2). ``supersede`` maps old item id
        to the new one: the old item becomes ``superseded`` and leaves every index, in the same transaction. So does
        an active item whose key (within kind and scope) a saved active one takes. What left keeps its text as body.
        ``retract`` takes back, first, what a conversation (item id) was evidence for from an exchange on; a derived
        script that then has no evidence is gone. ``checkpoints`` are kept with the records: see ``checkpoints``.
        ``conflicts`` links pairs of item ids that cannot both hold; ids that are not there are passed over.
        Raises: StoreBusy, StoreFull, StoreReadOnly, StoreMoved (nothing was stored); NotFound for an unknown old id.
        """
        ...

    def mark(self, ids: Sequence[str], state: State, at: float) -> int:
        """Set the state of items (for example ``missing``); returns how many changed.

        ``at`` is when the state changed; ``updated_at`` stays. Unknown ids are skipped.
        """
        ...

    def delete(self, ids: Sequence[str], *, bury: Collection[str] = ()) -> int:
        """Remove items from the table and every index, so that no byte of their text stays in a store's own files.

        A server's files are its own: there the rows are gone, and their bytes when it writes over them (``scrub``).
        What a removed conversation was evidence for is taken back. ``bury`` keeps digests of what must not come back.
        """
        ...

    def scrub(self) -> bool:
        """Make what was replaced so far leave the files, as ``delete`` does for what it removes.

        False when another process was reading what is to go: then a later ``scrub`` or ``delete`` tries again.
        """
        ...

    def buried(self) -> frozenset[str]:
        """Every digest that was buried."""
        ...

    def checkpoints(self, prefix: str) -> Mapping[str, str]:
        """How far sources were read: state by source, of those whose name begins with ``prefix``."""
        ...

    def evidence(self, item_id: str) -> tuple[Evidence, ...]:
        """What an item stands on, oldest first."""
        ...

    def conflicts(self, ids: Sequence[str]) -> Mapping[str, tuple[Item, ...]]:
        """What cannot hold beside each item, newest first; items without any are left out.

        A link ends with either item, and is silent while one of them is superseded.
        """
        ...

    def tallies(self, ids: Sequence[str]) -> Mapping[str, tuple[Tally, ...]]:
        """How the evidence of items adds up, by item id; items without evidence are left out."""
        ...

    def proven(self, where: Filter, weights: Mapping[EvidenceKind, float], k: int) -> tuple[tuple[str, ...], int]:
        """The ids of the ``k`` active items with the best evidence, and how many there are. The filter's times do not
        count.

        Only items with a verified outcome that supports them, by s / (s + c + 1) over the weights of what supports and
        what contradicts, rounded to 1e-9; ties by their newest evidence, then by id.
        """
        ...

    def recent(self, where: Filter, k: int) -> tuple[Item, ...]:
        """The ``k`` items that can be recalled and pass the filter, newest first, ties by id."""
        ...

    def lexical(self, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
        """The ``k`` best passages by BM25 over OR-joined index terms (``text.Analyzer.query``), best first,
        ties by passage id. ``k`` is lowered to ``rules.MAX_K``, the terms to the first ``rules.MAX_TERMS``."""
        ...

    def nearest(self, vector: Vector, where: Filter, k: int, *, space: Space | None = None) -> tuple[Hit, ...]:
        """The ``k`` passages of highest cosine similarity, best first, ties by passage id.

        ``space``, when given, has to be the one in force, checked in the snapshot that is searched: another process
        may have changed the model meanwhile. Raises: StoreMismatch when it is not, StoreError for a vector that does
        not fit.
        """
        ...

    def mentions(
        self, entities: Sequence[EntityId], where: Filter, most: int
    ) -> Mapping[EntityId, tuple[PassageId, ...]]:
        """The passages that name each entity, in no order; entities that none names are left out.

        At most ``most + 1`` of each: more than ``most`` say only that the entity is common.
        """
        ...

    def foreground(self, facts: Collection[str], others: Collection[str], most: Most, weights: Weights) -> Foreground:
        """What a brief is made from, of one snapshot: see ``foreground.Shelf``."""
        ...

    def naming(
        self, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
    ) -> tuple[Note, ...]:
        """Whole items that name what a message names: see ``foreground.Shelf``."""
        ...

    def entities_of(self, passages: Sequence[PassageId]) -> Mapping[PassageId, tuple[EntityId, ...]]:
        """What each passage names; passages that are gone or name nothing are left out."""
        ...

    def timed(self, since: float, until: float, where: Filter, k: int) -> tuple[Hit, ...]:
        """The ``k`` passages that fit a time window best (``rules.timed_score``), best first, ties by passage id.

        One passage stands for an exchange of a session (by ``Passage.at``), one for anything without such times,
        which is where it began or ended. Outside, an item has one passage, up to ``rules.REACH`` away. Bounds are
        seconds since the epoch, both inclusive, and may be infinite.
        """
        ...

    def fetch(self, ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
        """Passages with their items, read once; ids that are gone are left out."""
        ...

    def item(self, item_id: str) -> tuple[Item, tuple[Passage, ...]]:
        """One item with all its passages in order. Raises: NotFound."""
        ...

    def ids(self, *, after: str = "", limit: int) -> tuple[str, ...]:
        """The ids of all items in order, whatever their state, from the one behind ``after`` on."""
        ...

    def find(self, kind: Kind, scope: str, key: str) -> Item | None:
        """The active item under a key (topic key, path), if any."""
        ...

    def history(self, item_id: str, limit: int) -> tuple[Item, ...]:
        """Superseded items that this one replaced, directly or through one another, newest first."""
        ...

    def successor(self, item_id: str) -> Item | None:
        """What stands today in the place of a superseded item; None for any other, or where nothing does."""
        ...

    def known(self, kind: Kind, scope: str) -> Mapping[str, Known]:
        """Every keyed item of a kind in a scope, by key: the basis of an incremental sync. Not the superseded ones."""
        ...

    def scopes(self) -> frozenset[str]:
        """Every scope that holds at least one item."""
        ...

    def projects(self) -> tuple[Project, ...]:
        """Every project that was ever registered."""
        ...

    def register(self, project: Project, at: float, *, replaces: str | None = None) -> None:
        """Remember a project's key, name and root. ``replaces``: the key it had before, which is forgotten."""
        ...

    def pending(self, limit: int, *, after: PassageId | None = None) -> tuple[PendingPassage, ...]:
        """Passages without a vector, by id, resumable with ``after``."""
        ...

    def set_vectors(self, space: Space, vectors: Mapping[PassageId, Vector | None]) -> int:
        """Store vectors (``None`` marks a passage that cannot have one); passages that are gone are skipped.

        Returns how many vectors were stored. The first call fixes the index's space. Raises: StoreError when
        ``space`` is not the one in force, or one is no unit vector of it: then nothing was stored.
        """
        ...

    def waiting(self, within: ScopeFilter | None = None) -> int:
        """How many passages wait for a vector, of what a recall admits or of all. Every recall asks: an index knows."""
        ...

    def passages(self, within: ScopeFilter | None = None) -> int:
        """How many passages there are, of what a recall admits or of all, by what the items say of themselves."""
        ...

    def reset_vectors(self, space: Space | None = None) -> int:
        """Drop every vector; all passages become pending. Returns how many.

        ``space`` is in force from then on: vectors of another one are refused. None leaves it to the next vectors.
        """
        ...

    def space(self) -> Space | None:
        """The space of the vectors held, or None when there are none yet."""
        ...

    def note(self, happened: Sequence[Event], *, keep_from: float, dropped: int = 0) -> None:
        """Store what happened, oldest first, waiting no longer than ``rules.NOTE_MS`` for another process.

        What is older than ``keep_from`` goes. ``dropped`` is added to the count of what was never stored. Raises:
        StoreBusy, StoreReadOnly, StoreError: then nothing was stored.
        """
        ...

    def noted(self, since: float, *, project: str | None = None, top: int = 0) -> Noted:
        """What was noted since a time, of one project (its key) or of all, with the ``top`` items by reuse, then by
        opening, then by recalls."""
        ...

    def find_recall(self, *, id: str = "", session: str = "", projects: Collection[str] | None = None) -> str | None:
        """The id of a noted recall of any of these projects (their keys; None: of all): the one of this ``id``, or else
        the latest of a client session."""
        ...

    def recalled_items(self, recall_ids: Sequence[str]) -> tuple[RecalledItem, ...]:
        """What these recalls returned and is still there, oldest recall first, then by rank."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """What this thread reads in the block is of one moment, and costs one transaction. Blocks may nest.

        For the time of a few searches: nothing is waited for in it, and nothing is written.
        """
        ...

    def lease(self, name: str, seconds: float) -> AbstractContextManager[bool]:
        """A lock shared by all processes on this store; yields False when another live process holds it.

        A lease belongs to a thread; it is renewed by being entered again and lapses after ``seconds`` or with its
        process.
        """
        ...

    def info(self, *, scopes: Collection[str] | None = None) -> StoreInfo:
        """Counts (of some scopes or of all), versions and warnings for ``status``."""
        ...

    def secret(self, name: str) -> bytes:
        """A random 32-byte key kept with the store, made on first use (keys the redaction placeholders)."""
        ...

    def close(self) -> None:
        """Release every connection of every thread."""
        ...
