"""One call of a tool: from its arguments to its answer, attended to while it lasts, with two planes of errors.

A caller's mistake becomes a readable tool error; a mistake of ours is logged once, by place, and told in one neutral
line. Knows nothing about transports, or about what the tools do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext

from grounded_mcp.errors import GroundedError, InputError, StoreMoved
from grounded_mcp.events import Caller
from grounded_mcp.faces.arguments import check, nearest
from grounded_mcp.faces.lifetime import Opening
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.replies import INTERNAL, clean, encoded, one_line, places
from grounded_mcp.faces.tools import Answer, Tool
from grounded_mcp.stopping import while_wanted

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory
    from grounded_mcp.render import RenderOptions

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

BEAT_S = 1.0
"""How often a client that asked for progress is told that its call goes on."""

_SHARES = (1.0, 0.5, 0.25, 0.1)
"""Parts of the character budget that are tried until an answer fits in bytes: one character has up to four."""

_FRAME = 400
"""Bytes that the protocol puts around the two halves, the longest request id of common clients included."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What every call needs besides its arguments. ``view``: how much an answer may show."""

    opening: Opening
    options: ServerOptions
    view: Callable[[], RenderOptions]


async def attended(context: Context, work: Callable[[], types.CallToolResult]) -> types.CallToolResult:
    """``work`` in a worker thread. A cancelled request calls it off; its thread is waited for, its answer dropped."""
    called_off = threading.Event()

    def wanted() -> types.CallToolResult:
        with while_wanted(called_off.is_set):
            return work()

    async with anyio.create_task_group() as beside:
        beside.start_soon(_attend, context, called_off)
        result = await anyio.to_thread.run_sync(wanted)
        beside.cancel_scope.cancel()
    return result


async def _attend(context: Context, called_off: threading.Event) -> None:
    """Until the call is over or cancelled. How much is left is not known, so progress is the seconds it has taken."""
    seconds = 0.0
    try:
        while True:
            await anyio.sleep(BEAT_S)
            seconds += BEAT_S
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await context.session.report_progress(seconds, message=f"working for {seconds:.0f} s")
    finally:
        called_off.set()


def answer(
    table: Mapping[str, Tool], caller: Caller, arguments: Mapping[str, object], desk: Desk
) -> types.CallToolResult:
    """One call of the caller's tool, in a worker thread. Never raises."""
    memory: Memory | None = None
    name = caller.tool
    try:
        tool = table.get(name)
        if tool is None:
            close = nearest(name, list(table))
            hint = f"Did you mean {close}?" if close else f"The tools are {', '.join(table)}."
            raise InputError(name[:64], "is not a tool.", hint)
        values = check(name, tool.arguments, arguments)
        desk.opening.meet(caller)
        memory = desk.opening.memory()
        found = tool.ask(memory, {**values, "caller": caller} if tool.signed else values)
        view, largest = desk.view(), desk.options.max_reply_bytes
        most = max(largest, min(values.get(tool.wants, 0), view.pack_byte_cap))
        return _result(_fitted(lambda fit: tool.show(found, fit, values), view, most))
    except StoreMoved as error:
        desk.opening.let_go(memory)  # what is under the path now is for the next call
        return _failure(desk.opening.words(error))
    except GroundedError as error:
        return _failure(desk.opening.words(error))
    except BaseException as error:
        # SystemExit and KeyboardInterrupt too: leaving the worker they would end the event loop.
        exact = error if logger.isEnabledFor(logging.DEBUG) else None
        logger.error("%s failed: %s", one_line(name, 64), places(error), exc_info=exact)
        return _failure(INTERNAL)


def _fitted(show: Callable[[RenderOptions], Answer], view: RenderOptions, max_bytes: int) -> Answer:
    """The longest answer whose two halves together have at most ``max_bytes``. Raises: GroundedError where none has."""
    for share in _SHARES:
        shown = show(replace(view, max_chars=int(view.max_chars * share)))
        if len(encoded([shown.envelope, shown.text])) + _FRAME <= max_bytes:
            return shown
    raise GroundedError(f"The answer does not fit into {max_bytes:,} bytes.", "Ask for less, or for one item.")


def _result(shown: Answer) -> types.CallToolResult:
    block = types.TextContent(type="text", text=clean(shown.text))
    return types.CallToolResult(content=[block], structured_content=clean(shown.envelope))


def _failure(text: str) -> types.CallToolResult:
    block = types.TextContent(type="text", text=told(text))
    return types.CallToolResult(content=[block], is_error=True)


def told(text: str) -> str:
    """An error's text may quote what is stored: it is made inert like everything else (case 3)."""
    from grounded_mcp.inert import inert

    return inert(one_line(text)).text
