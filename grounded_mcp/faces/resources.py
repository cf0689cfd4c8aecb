"""The resources: the startup brief and every item, by URI. Both are a tool's answer, under another name.

Knows nothing about how an answer is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from grounded_mcp.faces.replies import one_line
from grounded_mcp.faces.tools import Answer, Tool

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory
    from grounded_mcp.render import RenderOptions

BRIEF_URI: Final = "memory://brief"
ITEM_URI: Final = "memory://item/"
TEMPLATE: Final = ITEM_URI + "{id}{?offset}"


def _show_brief(made: Any, _options: RenderOptions, _values: dict[str, Any]) -> Answer:
    from grounded_mcp.brief import brief_data, brief_text

    return Answer(brief_data(made), brief_text(made))


def _brief(memory: Memory, _values: dict[str, Any]) -> Any:
    return memory.brief()


BRIEF: Final = Tool(
    name="startup_brief",
    title="Startup brief",
    about="What an agent should know when it starts here: pinned facts, other facts, recent sessions, commands.",
    arguments=(),
    output={},
    ask=_brief,
    show=_show_brief,
)
"""Not listed among the tools: a resource, a prompt and a hook bring it."""

LISTED: Final = types.ListResourcesResult(
    resources=[
        types.Resource(
            name=BRIEF.name,
            title=BRIEF.title,
            uri=BRIEF_URI,
            description=BRIEF.about,
            mime_type="text/markdown",
            annotations=types.Annotations(audience=["assistant", "user"], priority=0.8),
        )
    ]
)

TEMPLATES: Final = types.ListResourceTemplatesResult(
    resource_templates=[
        types.ResourceTemplate(
            name="memory_item",
            title="A memory, in full",
            uri_template=TEMPLATE,
            description="The full text behind a card's `open` pointer, page by page, as open_memory gives it. "
            "`offset` is the character to read from: `nextOffset` of the page before.",
            mime_type="text/plain",
        )
    ]
)


def asked(uri: str) -> tuple[str, dict[str, object]]:
    """The tool behind a URI, and its arguments. Raises: MCPError naming the resources there are."""
    if uri == BRIEF_URI:
        return BRIEF.name, {}
    path, _, query = uri.partition("?")
    pointer = unquote(path.removeprefix(ITEM_URI))
    given = dict(parse_qsl(query, keep_blank_values=True))
    if not path.startswith(ITEM_URI) or not pointer or given.keys() - {"offset"}:
        raise not_there(uri, f"There is no resource {one_line(uri, 120)}. There are {BRIEF_URI} and {TEMPLATE}.")
    return "open_memory", {"id": pointer, **{name: value for name, value in given.items() if value}}


def shown(uri: str, answer: types.CallToolResult) -> types.ReadResourceResult:
    """A tool's answer as a resource. Raises: MCPError with the reason of an answer that is none."""
    text = "\n".join(block.text for block in answer.content if isinstance(block, types.TextContent))
    if answer.is_error:
        raise not_there(uri, text)
    kind = "text/markdown" if uri == BRIEF_URI else "text/plain"
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


def not_there(uri: str, why: str) -> MCPError:
    """-32602, as SEP-2164 has it for a resource that is not found, in both eras."""
    return MCPError(code=types.INVALID_PARAMS, message=why, data={"uri": one_line(uri, 300)})
