"""The MCP server: the table of tools as protocol, and two planes of errors.

A caller's mistake becomes a readable tool error; a mistake of ours is logged once, by place, and told in one neutral
line. The SDK's low-level ``Server`` is used on purpose: ``MCPServer`` builds a pydantic model per tool and answers
wrong arguments in pydantic's words. Knows nothing about transports or about what the tools do.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from grounded_mcp import __version__
from grounded_mcp.errors import GroundedError, InputError, StoreMoved
from grounded_mcp.events import Caller
from grounded_mcp.faces import prompts
from grounded_mcp.faces.arguments import check, input_schema, nearest
from grounded_mcp.faces.callers import Callers
from grounded_mcp.faces.lifetime import Opening
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.replies import INTERNAL, clean, encoded, one_line, places
from grounded_mcp.faces.tools import INSTRUCTIONS, TOOLS, Answer, Tool

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory
    from grounded_mcp.render import RenderOptions

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

_SHARES = (1.0, 0.5, 0.25, 0.1)
"""Parts of the character budget that are tried until an answer fits in bytes: one character has up to four."""

_ESCAPED = 3
"""An answer's two halves as JSON, over the bytes of one."""

_FRAME = 400
"""Bytes that the protocol puts around the two halves, the longest request id of common clients included."""


def build(opening: Opening, options: ServerOptions, view: Callable[[], RenderOptions]) -> Server[Any]:
    """The protocol server over a memory that is opened when first needed.

    Connecting and listing touch neither the store nor a model.
    """
    listing = types.ListToolsResult(tools=[_listed(tool) for tool in TOOLS])
    table = {tool.name: tool for tool in TOOLS}
    callers = Callers(options.session_idle_seconds)

    async def list_tools(context: Context, _params: object) -> types.ListToolsResult:
        opening.meet(callers.of(context))
        return listing

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = callers.of(context, params.name)
        work = functools.partial(answer, table, caller, params.arguments or {}, opening, options, view)
        return await anyio.to_thread.run_sync(work)

    async def list_prompts(_context: Context, _params: object) -> types.ListPromptsResult:
        return prompts.LISTED

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        caller = callers.of(context, prompts.checked(params.name))
        given = params.arguments or {}
        work = functools.partial(answer, table, caller, given, opening, options, view)
        return prompts.shown(clean(given.get("task", "")), await anyio.to_thread.run_sync(work))

    server: Server[Any] = Server(
        "grounded-mcp",
        version=__version__,
        title="grounded-mcp",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.middleware.append(_boundary(opening))
    return server


def _boundary(opening: Opening) -> ServerMiddleware[Any]:
    """What surrounds every request: the memory is warmed up, and an error of ours is told in one neutral line."""

    async def around(ctx: Context, call_next: CallNext) -> HandlerResult:
        opening.warm_up()
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to the wire: the SDK would send its words
            logger.error("%s failed: %s", ctx.method, places(error))
            raise MCPError(code=types.INTERNAL_ERROR, message=INTERNAL) from None

    return around


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=input_schema(tool.arguments),
        output_schema=tool.output,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.destroys,  # what a fact replaces is retired: it stays readable as history
            idempotent_hint=tool.repeats,
            open_world_hint=False,
        ),
        _meta={"anthropic/alwaysLoad": True} if tool.always_load else None,
    )


def answer(
    table: Mapping[str, Tool],
    caller: Caller,
    arguments: Mapping[str, object],
    opening: Opening,
    options: ServerOptions,
    view: Callable[[], RenderOptions],
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
        opening.meet(caller)
        memory = opening.memory()
        found = tool.ask(memory, {**values, "caller": caller} if tool.signed else values)
        most = max(options.max_reply_bytes, _ESCAPED * min(values.get(tool.wants, 0), view().pack_byte_cap))
        return _result(_fitted(lambda fit: tool.show(found, fit, values), view(), most))
    except StoreMoved as error:
        opening.let_go(memory)  # what is under the path now is for the next call
        return _failure(str(error))
    except GroundedError as error:
        return _failure(str(error))
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
    """An error's text may quote what is stored: it is made inert like everything else (case 3)."""
    from grounded_mcp.inert import inert

    block = types.TextContent(type="text", text=inert(one_line(text)).text)
    return types.CallToolResult(content=[block], is_error=True)
