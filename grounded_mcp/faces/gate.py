"""Who may speak to the HTTP server: one ASGI layer around every route, before any handler, 404s included.

The SDK checks Host and Origin inside its own endpoints only, and takes any localhost port for a friend. Here
a request needs a Host that was named, an Origin of this very server (or none), and the token where one is set.
Who brings a token is for ``doorman`` to say. Knows nothing about tools.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.responses import PlainTextResponse

from grounded_mcp.errors import ConfigError, GroundedError
from grounded_mcp.faces.doorman import BEARER, Bearer, Doorman
from grounded_mcp.faces.limits import Limits
from grounded_mcp.faces.metrics import Meter
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.replies import clean, encoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

HEALTH = "/healthz"
METRICS = "/metrics"
STREAM = "/sse"
_LOOPBACK = ("127.0.0.1", "::1")
"""The only addresses that need no token. Other 127.x addresses are refused like a LAN address (case 49)."""
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Access:
    """What a request must show. ``hosts`` and ``origins`` are lower case and exact; ``token`` may be empty."""

    hosts: frozenset[str]
    origins: frozenset[str]
    token: str


def addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    """What ``host`` resolves to, IPv4 first. Raises: ConfigError for a name that does not resolve, or no port."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"server.port {port} is no port.", "Use a number from 1 to 65535, or 0 for any free one.")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"server.host {host!r} does not resolve.", "Use 127.0.0.1 or a name that does.") from error
    pairs = dict.fromkeys((socket.AddressFamily(family), str(where[0])) for family, _, _, _, where in found)
    return sorted(pairs, key=lambda pair: pair[0] != socket.AF_INET)


def access(host: str, port: int, options: ServerOptions, *, guarded: Callable[[], bool] = lambda: False) -> Access:
    """The rules for a bound address. ``guarded``: whether the store has named tokens.

    Raises: ConfigError where binding there would expose the memory."""
    named = tuple(name.lower() for name in options.allowed_hosts)
    if all(address in _LOOPBACK for _, address in addresses(host, port)):
        local = _with_port(_LOOPBACK_NAMES, port)
        return Access(local | _with_port(named, port), _origins(local | _with_port(named, port)), options.token)
    if not options.token and not guarded():
        raise ConfigError(
            f"{host or 'every interface'} can be reached from other machines and no token is set.",
            "Bind to 127.0.0.1, or set server.allowed_hosts and make a token: `grounded-mcp token create`.",
        )
    if not named:
        raise ConfigError(
            f"{host or 'every interface'} is bound with a token, but no Host header is allowed.",
            f'Set server.allowed_hosts to what clients put into the URL, for example ["memory.example:{port}"].',
        )
    return Access(_with_port(named, port), _origins(_with_port(named, port)), options.token)


def _with_port(names: tuple[str, ...], port: int) -> frozenset[str]:
    """Each name with its port: its own, or the bound one; bare too where that is HTTP's default."""
    full = {name if _has_port(name) else f"{_bracketed(name)}:{port}" for name in names}
    return frozenset(full | {name for name in names if port == 80 and not _has_port(name)})


def _has_port(name: str) -> bool:
    return re.search(r"(?:^[^:]+|\]):\d+$", name) is not None


def _bracketed(name: str) -> str:
    try:
        return f"[{name}]" if ipaddress.ip_address(name).version == 6 else name
    except ValueError:
        return name


def _origins(hosts: frozenset[str]) -> frozenset[str]:
    return frozenset(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https"))


class Gate:
    """The ASGI layer. State: how many event streams are open, and what each token asked for lately."""

    def __init__(
        self,
        app: ASGIApp,
        rules: Access,
        options: ServerOptions,
        doorman: Doorman | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._app = app
        self._rules = rules
        self._options = options
        self._doorman = doorman or Doorman(rules.token, tuple)
        self._meter = meter or Meter()
        self._limits = Limits(options.requests_per_minute, options.requests_at_once)
        self._streams = 0
        # Of its own: tools that block all threads of the default one must not keep anybody out.
        self._threads = anyio.CapacityLimiter(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answered = [0]

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered[0] = message["status"]
            await send(message)

        self._meter.begin()
        try:
            await self._answer(scope, receive, send_on)
        finally:
            self._meter.end(answered[0])

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refusal := self._foreign(scope) or await self._unknown(scope) or _unreadable(scope):
            await refusal(scope, receive, send)
        elif scope["method"] == "POST":
            await self._bounded(scope, receive, send)
        elif scope["path"] == STREAM:
            await self._stream(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _foreign(self, scope: Scope) -> PlainTextResponse | None:
        """Why this request is not for this server; None where it is."""
        hosts, origins = (_values(scope, name) for name in (b"host", b"origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self._rules.hosts:
            return _say(421, "This Host is not served here.")
        if any(origin.lower() not in self._rules.origins for origin in origins):
            return _say(403, "This Origin may not call.")
        return None

    async def _unknown(self, scope: Scope) -> PlainTextResponse | None:
        """Why its sender may not ask; None where it may, and then the scope says who it is."""
        if scope["path"] == HEALTH:
            return None
        try:
            # The roster is read from the store, which may wait for its lock or for a network.
            bearer = await anyio.to_thread.run_sync(self._doorman.admit, _brought(scope), limiter=self._threads)
        except GroundedError as error:
            logger.warning("nobody can be let in: %s", error)
            return _say(503, "The store cannot be read. The server's log says why.")
        if bearer is None:
            return _say(401, "A bearer token is needed.", {"WWW-Authenticate": "Bearer"})
        if not (bearer.may_measure if scope["path"] == METRICS else bearer.may_ask):
            return _say(403, "This token is not for that.")
        scope[BEARER] = bearer
        if bearer.token is not None:  # by this the SDK keeps a session to the token that began it (case 52)
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=bearer.token.digest, scopes=[]))
        return None

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Within what its token may ask for at once and in a minute. The owner is not counted."""
        bearer: Bearer = scope.get(BEARER, Bearer())
        if bearer.token is None:
            await self._post(scope, receive, send)
        elif wait := self._limits.enter(bearer.name):
            told = "This token asks for too much at once."
            await _say(429, told, {"Retry-After": str(wait)})(scope, receive, send)
        else:
            try:
                await self._post(scope, receive, send)
            finally:
                self._limits.leave(bearer.name)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body within its time and size, then hand it on."""
        body: bytes | None = None
        with anyio.move_on_after(self._options.request_seconds) as in_time:
            body = await _body(receive, self._options.max_body_bytes)
        if in_time.cancelled_caught:
            await _say(408, "The request body took too long.")(scope, receive, send)
        elif body is None:
            await _say(413, f"The body may have {self._options.max_body_bytes} bytes.")(scope, receive, send)
        else:
            await self._app(scope, _replay(_readable(body), receive), send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams >= self._options.max_sessions:
            await _say(503, "Too many open sessions.")(scope, receive, send)
            return
        self._streams += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= 1


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _brought(scope: Scope) -> str:
    """The bearer token of a request, empty where it brings none. One in the URL is none."""
    given = _values(scope, b"authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


def _unreadable(scope: Scope) -> PlainTextResponse | None:
    if scope["method"] == "POST" and not _is_json(_values(scope, b"content-type")):
        return _say(415, "Content-Type must be application/json.")
    return None


def _is_json(types: list[str]) -> bool:
    return len(types) == 1 and types[0].partition(";")[0].strip().lower() == "application/json"


def _say(status: int, text: str, headers: dict[str, str] | None = None) -> PlainTextResponse:
    return PlainTextResponse(text + "\n", status, {"Connection": "close", **(headers or {})})


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The request's body, None once it exceeds ``limit``. A client that hangs up has sent what it has sent."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > limit:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _readable(body: bytes) -> bytes:
    """The body with lone surrogates as U+FFFD, as on stdio: the SDK's parser refuses a request that has one."""
    if _SURROGATE.search(body) is None:
        return body
    try:
        return encoded(clean(json.loads(body)))
    except (ValueError, RecursionError):
        return body


def _replay(body: bytes, receive: Receive) -> Receive:
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return unread.pop() if unread else await receive()

    return next_message
