"""Who may speak to the HTTP server: one ASGI layer around every route, before any handler, 404s included.

The SDK checks Host and Origin inside its own endpoints only, and takes any localhost port for a friend. Here
a request needs a Host that was named, an Origin of this very server (or none), and the token where one is set.
Knows nothing about MCP.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from starlette.responses import PlainTextResponse

from grounded_mcp.errors import ConfigError
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.replies import clean, encoded

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEALTH = "/healthz"
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


def access(host: str, port: int, options: ServerOptions) -> Access:
    """The rules for a bound address. Raises: ConfigError where binding there would expose the memory."""
    named = tuple(name.lower() for name in options.allowed_hosts)
    if all(address in _LOOPBACK for _, address in addresses(host, port)):
        local = _with_port(_LOOPBACK_NAMES, port)
        return Access(local | _with_port(named, port), _origins(local | _with_port(named, port)), options.token)
    if not options.token:
        raise ConfigError(
            f"{host or 'every interface'} can be reached from other machines and no token is set.",
            "Bind to 127.0.0.1, or set server.token and server.allowed_hosts.",
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
    """The ASGI layer. State: how many event streams are open."""

    def __init__(self, app: ASGIApp, rules: Access, options: ServerOptions) -> None:
        self._app = app
        self._rules = rules
        self._options = options
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        if refusal := self._refusal(scope):
            await refusal(scope, receive, send)
        elif scope["method"] == "POST":
            await self._post(scope, receive, send)
        elif scope["path"] == STREAM:
            await self._stream(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        """Why this request goes no further; None where it may pass."""
        hosts, origins, types = (_values(scope, name) for name in (b"host", b"origin", b"content-type"))
        if len(hosts) != 1 or hosts[0].lower() not in self._rules.hosts:
            return _say(421, "This Host is not served here.")
        if any(origin.lower() not in self._rules.origins for origin in origins):
            return _say(403, "This Origin may not call.")
        if scope["path"] != HEALTH and not self._is_authorised(scope):
            return _say(401, "A bearer token is needed.", {"WWW-Authenticate": "Bearer"})
        if scope["method"] == "POST" and not _is_json(types):
            return _say(415, "Content-Type must be application/json.")
        return None

    def _is_authorised(self, scope: Scope) -> bool:
        if not self._rules.token:
            return True
        given = _values(scope, b"authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        same = hmac.compare_digest(token.strip().encode("latin-1"), self._rules.token.encode("utf-8"))
        return scheme.lower() == "bearer" and same

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
