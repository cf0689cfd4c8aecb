"""The server's process: a transport, a memory behind it, and an end.

Importing this module is cheap, and ``serve`` takes stdin and stdout before it imports the SDK. Knows nothing about
tools or messages.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from grounded_mcp.errors import ConfigError, GroundedError
from grounded_mcp.faces.lifetime import Lifetime, parent_watch
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.replies import PlacesOnly, places
from grounded_mcp.faces.team import Team
from grounded_mcp.faces.wire import Wire, claim

if TYPE_CHECKING:
    from grounded_mcp.assemble import Base
    from grounded_mcp.config import Values
    from grounded_mcp.memory import Memory
    from grounded_mcp.render import RenderOptions
    from grounded_mcp.stores.roster import Token

logger = logging.getLogger(__name__)

Transport = Literal["stdio", "sse", "http"]


def serve(
    transport: Transport, host: str | None = None, port: int | None = None, *, load: Callable[[], Values]
) -> NoReturn:
    """Serve one memory until the client is gone or a signal comes; the process ends here, by ``os._exit``.

    ``host`` and ``port`` override ``[server]`` for "http" and "sse", which serve the same two endpoints. Settings that
    cannot be used do not end a server on stdio: every tool call says what is wrong, and loads them again.
    Raises: ConfigError before anything is served, where an address cannot or must not be bound.
    """
    wire = claim() if transport == "stdio" else None
    given: dict[str, Any] = {"host": host, "port": port}
    options = replace(_options(load, transport), **{name: value for name, value in given.items() if value is not None})
    configure_logging(options.log_level)
    lifetime = Lifetime(options.grace_seconds)
    if wire is not None:
        lifetime.checks += [parent_watch(), lambda: "stdout closed" if wire.reader_gone() else None]
    lifetime.begin()
    code = 0
    try:
        _run(wire, lifetime, options, load)
    except GroundedError:
        raise
    except BaseException as error:  # noqa: BLE001 - the boundary to the process
        logger.error("the server stopped: %s", places(error))
        code = 1
    lifetime.end("stopped", code)
    lifetime.wait()


def _run(wire: Wire | None, lifetime: Lifetime, options: ServerOptions, load: Callable[[], Values]) -> None:
    """Everything that needs the SDK; stdout is safe by now."""
    from grounded_mcp.faces.protocol import build

    view = functools.cache(lambda: _view(load()))
    team = Team(lambda: _open_base(load()), _owner, _bounded)
    lifetime.close = team.close
    if wire is not None:
        import anyio

        from grounded_mcp.faces import stdio

        server = build(team.owner, options, view, hooks=True)
        anyio.run(stdio.serve, server, wire, lifetime, options.max_line_bytes)
    else:
        from grounded_mcp.faces import http
        from grounded_mcp.faces.metrics import Meter

        meter = Meter()
        http.serve(build(team.owner, options, view, whose=team.whose, meter=meter), lifetime, options, team, meter)


def _options(load: Callable[[], Values], transport: Transport) -> ServerOptions:
    try:
        return load().pick(ServerOptions, "server")
    except ConfigError:
        if transport != "stdio":
            raise
        return ServerOptions()


def _open_base(values: Values) -> Base:
    """Imported here, not above: this is where the stages, the store's driver and the model's library come in."""
    from grounded_mcp.assemble import open_base
    from grounded_mcp.settings import settings

    return open_base(settings(values))


def _owner(base: Base) -> Memory:
    from grounded_mcp.assemble import build_memory, find_project
    from grounded_mcp.faces.hooks.importing import drain_in_background

    try:
        memory = build_memory(base, find_project(base.settings, base.settings.project_dir))
    except BaseException:
        base.store.close()
        raise
    drain_in_background(memory, str(base.settings.places.home))
    return memory


def _bounded(base: Base, token: Token) -> Memory:
    from grounded_mcp.assemble import bounded_memory

    return bounded_memory(base, token)


def _view(values: Values) -> RenderOptions:
    from grounded_mcp.render import RenderOptions

    return values.pick(RenderOptions, "render")


def configure_logging(level: str) -> None:
    """Log to stderr. Unless ``level`` is "debug", exceptions are logged by place only, whoever logs them (case 59)."""
    handler = logging.StreamHandler(sys.stderr)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(logging.Formatter(form) if level == "debug" else PlacesOnly(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("grounded_mcp").setLevel(level.upper())
