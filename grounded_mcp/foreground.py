"""What work is begun with, as a store hands it over: the facts that matter, the latest sessions, what worked.

Plain named tuples, because a hook reads them at every start of an agent: ``values`` takes longer to import than all
that is done with them. Pure. Knows nothing about budgets or how they are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

GLOBAL_SCOPE = "global"

ELSEWHERE = "/dev/null/elsewhere"
"""The root of a project whose folder is on another machine, as for the callers of a team's server: there is never such
a folder, and what would be looked up in it is unknown rather than missing."""


class Note(NamedTuple):
    """An item as far as a brief shows it. ``text``: all of it, or its title where it is not kept whole."""

    id: str
    kind: str
    scope: str
    title: str
    text: str
    key: str | None = None
    importance: float | None = None
    pinned: bool = False
    updated_at: float = 0.0
    attrs: Mapping[str, str] = {}
    disputed: bool = False
    """Whether something is stored that cannot hold beside it."""


class Foreground(NamedTuple):
    """What one snapshot of a store holds. ``counts``: items that can be recalled, by kind."""

    facts: tuple[Note, ...]
    """Pinned ones first, then by importance, then the newest."""
    sessions: tuple[Note, ...]
    """Newest first."""
    scripts: tuple[Note, ...]
    """By evidence: commands that were proven to work, and not refuted since."""
    learnings: tuple[Note, ...]
    """Newest first."""
    counts: Mapping[str, int]


class Most(NamedTuple):
    """How many of each a store hands over."""

    facts: int
    sessions: int
    scripts: int
    learnings: int


class Weights(NamedTuple):
    """What evidence weighs, as in [confidence]."""

    verified: float = 1.0
    stated: float = 1.0
    diagnostic: float = 0.25


class Titled(Protocol):
    """What a project is called, and where its checkout stands."""

    @property
    def name(self) -> str: ...
    @property
    def branch(self) -> str | None: ...
    @property
    def worktree(self) -> str | None: ...


class Here(Titled, Protocol):
    """A project, as ``values.Project`` is one."""

    @property
    def key(self) -> str: ...
    @property
    def scope(self) -> str: ...


class KnownProject(NamedTuple):
    """A registered project, as far as scopes depend on it."""

    key: str
    name: str
    branch: str | None = None
    worktree: str | None = None

    @property
    def scope(self) -> str:
        return f"project:{self.key}"


class Shelf(Protocol):
    """What a brief needs of a store. Every method raises only ``StoreError``."""

    def scopes(self) -> frozenset[str]: ...

    def projects(self) -> Sequence[Here]: ...

    def foreground(self, facts: Collection[str], others: Collection[str], most: Most, weights: Weights) -> Foreground:
        """``facts`` and ``others``: the scopes that facts, and everything else, may be of."""
        ...

    def naming(
        self, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
    ) -> tuple[Note, ...]:
        """Active facts, learnings and scripts that name any of these (``concrete.entity_id``), most of them first,
        then the most important and the newest. What more than ``common`` items name tells none of them apart."""
        ...


class LightShelf(Shelf, Protocol):
    """What a hook opens for one brief."""

    def secret(self, name: str) -> bytes | None:
        """A key that the store keeps; None where it was never made."""
        ...

    def close(self) -> None: ...
