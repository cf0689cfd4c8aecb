"""Which client session a request belongs to, in either era of the protocol and over every transport.

- stdio: the process. A server on stdio has one client for all its life.
- HTTP where the protocol has sessions (``Mcp-Session-Id``, or the ``session_id`` of SSE): that session. Its id lets
  whoever has it speak in the session, so that only a digest of it goes further.
- HTTP where every request stands alone: what a client sends with each of them (its name and version, its user agent,
  its token) and where it is. It is one session until it is silent for ``server.session_idle_seconds``; two agents of
  one kind on one machine that work at the same time cannot be told apart.

Knows nothing about what is done with it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from grounded_mcp.events import Caller
from grounded_mcp.faces.doorman import BEARER, Bearer
from grounded_mcp.faces.replies import one_line

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

KNOWN = 10_000
"""Clients without a session that are remembered at once; those silent for longest are met anew."""

NAME_CHARS = 64


class Callers:
    """Names callers. ``clock``: seconds that only go forward."""

    def __init__(self, idle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._process = f"stdio-{uuid.uuid4().hex[:16]}"
        self._spells: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, context: ServerRequestContext[Any, Any], tool: str = "") -> Caller:
        client = context.session.client_params.client_info if context.session.client_params else None
        name, version = (client.name, client.version) if client else ("", "")
        return Caller(self._session(context.request, name, version), one_line(name, NAME_CHARS), tool)

    def _session(self, request: Any, name: str, version: str) -> str:
        """``request``: Starlette's, or None on stdio."""
        if request is None:
            return self._process
        held = request.headers.get("mcp-session-id") or request.query_params.get("session_id")
        if held:
            return f"http-{_digest(held)}"
        peer = request.client.host if request.client else ""
        bearer = request.scope.get(BEARER, Bearer()).name
        return self._spell(_digest(name, version, request.headers.get("user-agent", ""), peer, bearer))

    def _spell(self, client: str) -> str:
        """The session of a client that has none: a new one after a silence."""
        now = self._clock()
        with self._lock:
            session, heard = self._spells.pop(client, ("", 0.0))
            if not session or now - heard > self._idle_seconds:
                session = f"http-{uuid.uuid4().hex[:16]}"
            self._spells[client] = session, now
            if len(self._spells) > KNOWN:
                self._spells.popitem(last=False)
        return session


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
