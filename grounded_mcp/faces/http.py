"""MCP over HTTP: streamable HTTP at /mcp and SSE at /sse, one server, loopback by default.

Knows nothing about tools; who may call is decided in ``gate``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from grounded_mcp import __version__
from grounded_mcp.errors import ConfigError
from grounded_mcp.faces.doorman import Doorman
from grounded_mcp.faces.gate import HEALTH, METRICS, STREAM, Access, Gate, access, addresses
from grounded_mcp.faces.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from grounded_mcp.faces.lifetime import Lifetime
    from grounded_mcp.faces.metrics import Meter
    from grounded_mcp.faces.options import ServerOptions
    from grounded_mcp.faces.team import Team

logger = logging.getLogger(__name__)

MESSAGES = "/messages/"


def serve(server: Server[Any], lifetime: Lifetime, options: ServerOptions, team: Team, meter: Meter) -> None:
    """Serve until ``lifetime`` ends the process: what is in flight then is answered first, within the grace.

    Raises: ConfigError where the address cannot or must not be bound; StoreError where its tokens cannot be read.
    """
    guarded = functools.cache(lambda: bool(team.roster()))
    access(options.host, options.port, options, guarded=guarded)
    listener = listen(options.host, options.port)
    port = int(listener.getsockname()[1])
    rules = access(options.host, port, options, guarded=guarded)
    web = _Uvicorn(_config(application(server, rules, options, team, meter), options))
    stopped = threading.Event()

    def drain(seconds: float) -> None:
        web.should_exit = True
        stopped.wait(seconds)

    lifetime.drain = drain
    logger.info("serving http://%s:%d/mcp and /sse", options.host, port)
    try:
        asyncio.run(web.serve(sockets=[listener]))
    finally:
        stopped.set()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one. Raises: ConfigError."""
    family, address = addresses(host, port)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if socket.has_ipv6 and family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # On Windows the option would let another program take over a port that is in use.
        if hasattr(socket, "AF_UNIX"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
    except OSError as error:
        listener.close()
        told = f"{address} port {port} cannot be bound: {error.strerror or error}."
        raise ConfigError(told, "Choose another server.port, or stop what uses it.") from error
    return listener


def application(server: Server[Any], rules: Access, options: ServerOptions, team: Team, meter: Meter) -> Gate:
    """Every route behind the gate. The SDK's own checks stay on, with the same lists."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=sorted(rules.hosts),
        allowed_origins=sorted(rules.origins),
    )
    streamable = server.streamable_http_app(
        streamable_http_path="/mcp",
        transport_security=security,
        max_request_body_size=options.max_body_bytes,
        session_idle_timeout=options.session_idle_seconds,
        max_sessions=options.max_sessions,
    )
    messages = SseServerTransport(MESSAGES, security, options.max_body_bytes)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with server.session_manager.run():
            yield

    routes = [
        Route(HEALTH, _health(team.owner.healthy), methods=["GET"]),
        Route(METRICS, _metrics(meter, team), methods=["GET"]),
        Route(STREAM, _EventStream(server, messages), methods=["GET"]),
        Mount(MESSAGES, app=messages.handle_post_message),
        *streamable.routes,
    ]
    doorman = Doorman(rules.token, team.roster)
    return Gate(Starlette(routes=routes, lifespan=lifespan), rules, options, doorman, meter)


class _EventStream:
    """The long answer to GET /sse: one MCP connection (an ASGI application, as its answer is the connection)."""

    def __init__(self, server: Server[Any], messages: SseServerTransport) -> None:
        self._server = server
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._messages.connect_sse(scope, receive, send) as (inbox, outbox):
            await self._server.run(inbox, outbox, self._server.create_initialization_options())


def _health(healthy: Callable[[], bool]) -> Callable[[Request], Response]:
    def respond(_: Request) -> Response:  # a plain function: reading the store runs in a worker thread
        ok = healthy()
        return JSONResponse({"ok": ok, "version": __version__}, status_code=200 if ok else 503)

    return respond


def _metrics(meter: Meter, team: Team) -> Callable[[Request], Response]:
    def respond(_: Request) -> Response:  # a plain function, likewise
        return Response(meter.text(team.gauges()), headers={"Content-Type": CONTENT_TYPE})

    return respond


def _config(app: Gate, options: ServerOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_protocol(options.request_seconds),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=options.max_connections,
        timeout_graceful_shutdown=math.ceil(options.grace_seconds),
    )


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: ``Lifetime`` has its own, which also work while a tool blocks."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _protocol(seconds: float) -> type[H11Protocol]:
    """uvicorn's HTTP/1.1 that hangs up on a client which takes longer than ``seconds`` to send a request head."""

    class Impatient(H11Protocol):
        _watched: object = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            if self._is_idle() and self._watched is not self.cycle:
                self._watch()
            super().data_received(data)

        def _is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _watch(self) -> None:
            self._watched = self.cycle
            self.loop.call_later(seconds, self._hang_up, self.cycle)

        def _hang_up(self, cycle: object) -> None:
            if self.cycle is cycle and self._is_idle() and not self.transport.is_closing():
                self.transport.close()

    return Impatient
