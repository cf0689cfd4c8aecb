"""What two stores need to hand items over to each other whole, whichever engines they are.

An item travels with all that cannot be derived from its text: its place in history, its evidence, its conflicts, and
its vectors if they are wanted. Tokens and entities are derived anew. Knows nothing about files or formats.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from grounded_mcp.values import Record, SaveReport, Space, Vector


@dataclass(frozen=True, slots=True)
class Carried:
    """One item as a store hands it over. ``conflicts``: ids in order, whether or not their items are superseded.

    ``vectors`` are by ``Passage.seq``: None for a passage that cannot have one; one that is not there waits for its.
    """

    record: Record
    state_at: float | None = None
    superseded_by: str | None = None
    conflicts: tuple[str, ...] = ()
    vectors: Mapping[int, Vector | None] = field(default_factory=dict)


class Portable(Protocol):
    """A store that can be moved. Every method raises only ``StoreError``."""

    def carry(self, *, after: str = "", limit: int, vectors: bool = False) -> tuple[Carried, ...]:
        """Items by id, whatever their state, from the one behind ``after`` on; of one moment."""
        ...

    def adopt(
        self,
        carried: Sequence[Carried],
        *,
        space: Space | None = None,
        checkpoints: Mapping[str, str] | None = None,
        bury: Collection[str] = (),
    ) -> SaveReport:
        """Put items in as another store had them, at most ``MAX_BATCH``, with the rest in one transaction.

        Vectors are stored where ``space`` is theirs and the one in force, which it becomes where there is none;
        otherwise their passages wait. Conflicts are linked once both items are there. The same again changes nothing.
        """
        ...

    def secrets(self) -> Mapping[str, bytes]:
        """Every key kept with the store, by name."""
        ...

    def adopt_secret(self, name: str, value: bytes) -> None:
        """Keep a key of another store under a name, in the place of what is there."""
        ...
