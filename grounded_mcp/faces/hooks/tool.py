"""The hook as a call to the server that runs already: what a client's ``mcp_tool`` hook names, at no program's start.

It is answered by the name of `clients.program.HOOK_TOOL` and not listed: a model is offered no tool that is not for it,
and clients that have such hooks call a tool by its name (Claude Code 2.1, Codex 0.171). Over HTTP there is none: the
folder that is sent is one of the client's machine. The answer is the text that the command would have written.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import mcp_types as types

from grounded_mcp.faces.hooks.program import respond
from grounded_mcp.faces.replies import clean, one_line, places

logger = logging.getLogger(__name__)


def answered(arguments: Mapping[str, object]) -> types.CallToolResult:
    """What the client is to read; an event that cannot be answered is an error that says why. Never raises."""
    event, client = (str(arguments.get(name, "")) for name in ("hook_event_name", "client"))
    sent = json.dumps(dict(arguments)).encode("utf-8", "replace")
    try:
        text = respond((event, f"--client={client}"), lambda: sent).decode("utf-8")
    except Exception as error:  # noqa: BLE001 - the boundary to somebody else's session
        logger.warning("a hook was not answered: %s", places(error))
        words = one_line(str(error)) if isinstance(error, ValueError) else "The hook was not answered."
        return types.CallToolResult(content=[types.TextContent(type="text", text=clean(words))], is_error=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
