"""Passages that wait for a vector get one: in batches, resumably, by one process at a time (I2).

Embedding happens outside of any transaction; rows that vanish meanwhile are nobody's loss. Knows nothing about models
beyond ``PassageEmbedder``, nor about when it is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from grounded_mcp.errors import ModelError, StoreBusy, StoreMismatch
from grounded_mcp.stores.base import MAX_BATCH, Store
from grounded_mcp.stores.rules import check_space
from grounded_mcp.values import PassageId, Space, Vector

LEASE = "vectors"
LEASE_SECONDS = 60.0
"""Far longer than a batch takes (32 passages: about a second), so that it lapses only for a process that hangs."""


class PassageEmbedder(Protocol):
    """What filling needs of an embedder; ``models.guard.GuardedEmbedder`` has it. ``space`` and ``passages`` raise
    ModelError."""

    def wait_ready(self, seconds: float) -> bool: ...

    @property
    def space(self) -> Space: ...

    def passages(self, texts: Sequence[str]) -> list[Vector | None]: ...


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """What one run did. ``none``: passages that cannot have a vector; ``left``: still pending; ``reason``: why it
    ended early, None when it did not (or was stopped)."""

    embedded: int
    none: int
    left: int
    seconds: float
    reason: str | None


@dataclass(slots=True)
class _Tally:
    total: int
    embedded: int = 0
    none: int = 0
    after: PassageId | None = None
    reason: str | None = None

    @property
    def done(self) -> int:
        return self.embedded + self.none


def backfill(
    store: Store,
    embedder: PassageEmbedder,
    *,
    batch_size: int = 32,
    wait_s: float = 60.0,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> BackfillReport:
    """Embed every pending passage, ``batch_size`` (at most 100) between two writes; ``progress(done, total)``.

    Waits up to ``wait_s`` seconds for a model that is loading. A failing model, an index of another model, or another
    process at the same work ends it with a reason; what was written stays. ``stop`` is asked before every batch.
    Raises: StoreError.
    """
    started = time.monotonic()
    tally = _Tally(store.waiting())
    try:
        space = _space(embedder, wait_s, stop) if tally.total else None
        if space is not None:
            size = min(batch_size, MAX_BATCH)
            with store.lease(LEASE, LEASE_SECONDS):  # every batch renews it, and finds out whose it is
                while not stop() and _batch(store, embedder, space, size, tally):
                    if progress is not None:
                        progress(tally.done, max(tally.done, tally.total))
    except (ModelError, StoreMismatch) as error:
        tally.reason = str(error)
    seconds = time.monotonic() - started
    return BackfillReport(tally.embedded, tally.none, store.waiting(), seconds, tally.reason)


def _space(embedder: PassageEmbedder, seconds: float, stop: Callable[[], bool]) -> Space | None:
    """The model's space, waited for in short steps so that ``stop`` is heard; None when stopped."""
    until = time.monotonic() + seconds
    while not stop():
        try:
            return embedder.space
        except ModelError as error:
            if error.code != "loading" or time.monotonic() >= until:
                raise
        embedder.wait_ready(0.2)
    return None


def _batch(store: Store, embedder: PassageEmbedder, space: Space, size: int, tally: _Tally) -> bool:
    """Embed and write the next passages; False when there are none, or another process is at it."""
    with store.lease(LEASE, LEASE_SECONDS) as mine:
        if not mine:
            tally.reason = "Another process is adding vectors to this store."
            return False
        check_space(store.space(), space)
        pending = store.pending(size, after=tally.after)
        if not pending:
            return False
        vectors = embedder.passages([passage.text for passage in pending])
        found = {passage.id: vector for passage, vector in zip(pending, vectors, strict=True)}
        tally.embedded += store.set_vectors(space, found)  # fewer than found when passages vanished meanwhile
        tally.none += vectors.count(None)
    tally.after = pending[-1].id
    return True


def reset(store: Store, space: Space | None) -> int:
    """Drop every vector; from then on those of another space are refused. How many passages wait now.

    Raises, with nothing dropped: StoreBusy while another process fills in vectors; StoreError.
    """
    with store.lease(LEASE, LEASE_SECONDS) as mine:
        if not mine:
            raise StoreBusy("Another process is adding vectors to this store.", "Stop it, or try again later.")
        return store.reset_vectors(space)


def mismatch(held: Space | None, given: Space | None) -> str | None:
    """What is wrong when the index is another model's; nothing is known of one that is not loaded (None)."""
    try:
        if given is not None:
            check_space(held, given)
    except StoreMismatch as error:
        return str(error)
    return None
