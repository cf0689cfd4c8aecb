"""Who may use a team's server: tokens by name, as a store keeps them. A token itself is in no store. And its projects.

Knows nothing about HTTP, or about what a token's bearer asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Token:
    """``digest``: SHA-256 of the token in hexadecimal, which is enough for 256 random bits. Times are seconds since the
    epoch. ``projects`` are keys, ``scopes`` what may be used besides their projects' own. ``metrics``: the server's
    figures may be read."""

    name: str
    digest: str
    projects: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    read_only: bool = False
    metrics: bool = False
    created_at: float = 0.0
    expires_at: float | None = None
    revoked_at: float | None = None

    def valid(self, now: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Located(Protocol):
    """A store that can be bounded: it says in one statement where items lie. Raises only ``StoreError``."""

    def scopes_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The scopes of items by id; those that are not there are left out."""
        ...


class Census(Protocol):
    """A store that says when its projects were last registered, and forgets one. Raises only ``StoreError``."""

    def last_seen(self) -> Mapping[str, float]:
        """When each project was registered last, by key."""
        ...

    def unregister(self, key: str) -> None:
        """Forget that there is such a project; its items are left alone."""
        ...


class Roster(Protocol):
    """The tokens of a store, revoked ones included: a name is never given twice. Raises only ``StoreError``."""

    def tokens(self) -> tuple[Token, ...]:
        """Every token by name."""
        ...

    def add_token(self, token: Token) -> bool:
        """Keep a new one; False where the name is taken."""
        ...

    def revoke_token(self, name: str, at: float) -> bool:
        """Whether there was one of this name that was not revoked yet."""
        ...
