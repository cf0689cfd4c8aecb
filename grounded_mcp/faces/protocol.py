"""The MCP server: tools, resources, prompts and completions as protocol, from the tables that describe them.

The SDK's low-level ``Server`` is used on purpose: ``MCPServer`` builds a pydantic model per tool and answers wrong
arguments in pydantic's words. Knows nothing about transports or about what the tools do.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from grounded_mcp import __version__
from grounded_mcp.clients.program import HOOK_TOOL
from grounded_mcp.errors import GroundedError
from grounded_mcp.faces import completing, prompts, resources
from grounded_mcp.faces.answering import Context, Desk, answer, attended, told
from grounded_mcp.faces.arguments import input_schema
from grounded_mcp.faces.callers import Callers
from grounded_mcp.faces.lifetime import Opening
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.replies import INTERNAL, clean, places
from grounded_mcp.faces.tools import INSTRUCTIONS, TOOLS, Tool

if TYPE_CHECKING:
    from grounded_mcp.faces.metrics import Meter
    from grounded_mcp.render import RenderOptions

logger = logging.getLogger(__name__)

_TOOLS: Final = {tool.name: tool for tool in TOOLS}
_BEHIND: Final = {**_TOOLS, resources.BRIEF.name: resources.BRIEF}
"""What answers for resources and prompts."""


def build(
    opening: Opening,
    options: ServerOptions,
    view: Callable[[], RenderOptions],
    *,
    whose: Callable[[Context], Opening] | None = None,
    meter: Meter | None = None,
    hooks: bool = False,
) -> Server[Any]:
    """The protocol server over a memory that is opened when first needed: ``whose`` gives it for a request, else it is
    always ``opening``. ``hooks``: whether it answers them, too.

    Connecting and listing touch neither the store nor a model.
    """
    desk, callers = Desk(opening, options, view), Callers(options.session_idle_seconds)
    on = Handlers(desk, callers, _listing(), whose or (lambda _: opening), meter, hooks)
    server: Server[Any] = Server(
        "grounded-mcp",
        version=__version__,
        title="grounded-mcp",
        instructions=INSTRUCTIONS,
        on_list_tools=on.list_tools,
        on_call_tool=on.call_tool,
        on_list_resources=on.list_resources,
        on_list_resource_templates=on.list_templates,
        on_read_resource=on.read_resource,
        on_list_prompts=on.list_prompts,
        on_get_prompt=on.get_prompt,
        on_completion=on.complete,
    )
    server.middleware.append(_boundary(opening))
    return server


@dataclass(frozen=True, slots=True)
class Handlers:
    """One method for each of the protocol's requests that this server answers itself."""

    desk: Desk
    callers: Callers
    tools: types.ListToolsResult
    whose: Callable[[Context], Opening]
    meter: Meter | None
    hooks: bool

    async def list_tools(self, context: Context, _params: object) -> types.ListToolsResult:
        self.whose(context).meet(self.callers.of(context))
        return self.tools

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if self.hooks and params.name == HOOK_TOOL:
            from grounded_mcp.faces.hooks import tool

            return await attended(context, functools.partial(tool.answered, params.arguments or {}))
        return await self._answer(context, params.name, params.arguments, _TOOLS)

    async def list_resources(self, _context: Context, _params: object) -> types.ListResourcesResult:
        return resources.LISTED

    async def list_templates(self, _context: Context, _params: object) -> types.ListResourceTemplatesResult:
        return resources.TEMPLATES

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        name, arguments = resources.asked(params.uri)
        return resources.shown(params.uri, await self._answer(context, name, arguments))

    async def list_prompts(self, _context: Context, _params: object) -> types.ListPromptsResult:
        return prompts.LISTED

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        name, given = prompts.checked(params.name), params.arguments or {}
        return prompts.shown(clean(given.get("task", "")), await self._answer(context, name, given))

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        argument, opening = params.argument, self.whose(context)
        try:
            return await anyio.to_thread.run_sync(
                completing.completed, params.ref, argument.name, argument.value, opening.memory
            )
        except GroundedError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=told(opening.words(error))) from None

    async def _answer(
        self,
        context: Context,
        name: str,
        arguments: Mapping[str, object] | None,
        table: Mapping[str, Tool] = _BEHIND,
    ) -> types.CallToolResult:
        caller = self.callers.of(context, name)
        desk = replace(self.desk, opening=self.whose(context))
        began = time.perf_counter()
        result = await attended(context, functools.partial(answer, table, caller, arguments or {}, desk))
        if self.meter is not None and name in table:
            self.meter.called(name, time.perf_counter() - began, ok=not result.is_error)
        return result


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


def _listing() -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_listed(tool) for tool in TOOLS])


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
