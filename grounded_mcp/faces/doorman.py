"""Whose request is it? The owner's, the bearer's of a named token, or nobody's.

``server.token`` opens everything. A named token opens what it was made for. Where neither was ever made, whoever
reaches the server is its owner: that is one person's machine. Knows nothing about HTTP or about what a token opens.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from grounded_mcp.stores.roster import Token

PREFIX = "gmcp_"
"""Begins every named token, so that a scanner for secrets knows one when it sees it."""


BEARER = "grounded_mcp.bearer"
"""Under which key of a request's ASGI scope its ``Bearer`` is."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who asks. ``token`` None: the owner, who may do everything."""

    token: Token | None = None

    @property
    def name(self) -> str:
        return self.token.name if self.token else ""

    @property
    def may_ask(self) -> bool:
        return self.token is None or bool(self.token.projects)

    @property
    def may_measure(self) -> bool:
        return self.token is None or self.token.metrics


def new_token() -> str:
    """256 random bits, as text: nobody guesses one, so that its plain digest may be kept."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Doorman:
    """``owner``: ``server.token``, which may be empty. ``roster``: every named token, as the store has them now, so
    that one that is revoked is refused at the next request."""

    owner: str
    roster: Callable[[], Sequence[Token]]
    clock: Callable[[], float] = time.time

    def admit(self, given: str) -> Bearer | None:
        """Who brings this token (empty: none); None for nobody. Takes the same time for every token that is wrong.

        Raises: StoreError where the roster cannot be read: then nobody may be let in unseen.
        """
        if self.owner and hmac.compare_digest(given.encode("utf-8", "replace"), self.owner.encode("utf-8")):
            return Bearer()
        if self.owner and not given.startswith(PREFIX):
            return None
        named, seen = self.roster(), digest(given)
        matching = [each for each in named if hmac.compare_digest(each.digest, seen)]
        if matching:
            return Bearer(matching[0]) if matching[0].valid(self.clock()) else None
        return None if named or self.owner else Bearer()
