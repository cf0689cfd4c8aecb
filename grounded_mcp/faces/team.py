"""One store, several askers: the owner's memory, and a bounded one for each token's bearer.

Which memory answers is decided here and nowhere else: ``whose`` gives the ``Opening`` for a request, and what that
opens for a token stands on a ``BoundedStore``. Knows nothing about tools, or about how a token was recognised.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from grounded_mcp.errors import GroundedError, StoreBusy, StoreError, StoreStopped, StoreUnreachable
from grounded_mcp.faces.doorman import BEARER, Bearer
from grounded_mcp.faces.lifetime import Opening

if TYPE_CHECKING:
    from grounded_mcp.assemble import Base
    from grounded_mcp.memory import Memory
    from grounded_mcp.stores.roster import Token


logger = logging.getLogger(__name__)

_TOLD: tuple[tuple[type[StoreError], str], ...] = (
    (StoreStopped, "The search was called off. Ask again if the answer is still wanted."),
    (StoreBusy, "The memory is busy; nothing was stored. Try again in a moment."),
    (
        StoreUnreachable,
        "The memory cannot be reached; nothing was acknowledged. Try again in a moment, and look whether what you "
        "stored is there before you store it again.",
    ),
    (StoreError, "The memory cannot do this now. Tell whoever runs this server: its log says why."),
)


class Team:
    """``open_base`` opens the store with its models, ``owner`` and ``bounded`` make memories over it."""

    def __init__(
        self,
        open_base: Callable[[], Base],
        owner: Callable[[Base], Memory],
        bounded: Callable[[Base, Token], Memory],
    ) -> None:
        self._open_base = open_base
        self._make_owner = owner
        self._make_bounded = bounded
        self._base: Base | None = None
        self._guests: dict[str, _Guest] = {}
        self._lock = threading.Lock()
        self.owner = Opening(self._open)

    def whose(self, context: Any) -> Opening:
        """The memory for a request of the MCP SDK. Requests over stdio have no scope: they are the owner's."""
        request = context.request
        bearer: Bearer = request.scope.get(BEARER, Bearer()) if request is not None else Bearer()
        return self.opening(bearer.token)

    def opening(self, token: Token | None) -> Opening:
        if token is None:
            return self.owner
        with self._lock:
            if token.digest not in self._guests:
                self._guests[token.digest] = _Guest(self.owner, lambda: self._make_bounded(self._held(), token))
            return self._guests[token.digest]

    def roster(self) -> Sequence[Token]:
        """Every named token. Opens the store. Raises: GroundedError."""
        self.owner.memory()
        return self._held().store.tokens()

    def gauges(self) -> dict[str, float]:
        """Figures of the store, by the name of a metric."""
        try:
            info = self.owner.memory().status().store
        except GroundedError:
            return {"store_up": 0}
        items = {f'items{{kind="{kind}"}}': float(count) for kind, count in info.items.items()}
        return {"store_up": 1, **items, "passages_waiting": info.vectors.get("pending", 0), "store_bytes": info.bytes}

    def close(self) -> None:
        for guest in self._guests.values():
            guest.close()
        self.owner.close()

    def _open(self) -> Memory:
        self._base = self._open_base()
        return self._make_owner(self._base)

    def _held(self) -> Base:
        if self._base is None:  # whoever asks has opened the owner's memory first
            raise StoreError("The store is not open.", "Call again.")
        return self._base


class _Guest(Opening):
    """A memory that stands on the owner's store: opened after that, and anew when that was."""

    def __init__(self, host: Opening, open_memory: Callable[[], Memory]) -> None:
        super().__init__(open_memory)
        self._host = host
        self._under: Memory | None = None

    def memory(self) -> Memory:
        under = self._host.memory()
        if under is not self._under:
            super().let_go(self._memory)
            self._under = under
        return super().memory()

    def words(self, error: GroundedError) -> str:
        """Without where the store lies, which is nothing of the bearer's (case 60); the log has all of it."""
        if not isinstance(error, StoreError):
            return str(error)
        logger.warning("a token's bearer was told less: %s", error)
        return next(words for kind, words in _TOLD if isinstance(error, kind))

    def let_go(self, memory: Memory | None) -> None:
        super().let_go(memory)
        self._host.let_go(self._under)
