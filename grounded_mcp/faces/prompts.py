"""The prompts: what a person picks in a client. A tool's answer, put before the model with the task it is for.

Knows nothing about what a tool does or how its answer is made.
"""

from __future__ import annotations

from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from grounded_mcp.faces.replies import one_line
from grounded_mcp.faces.resources import BRIEF

LISTED: Final = types.ListPromptsResult(
    prompts=[
        types.Prompt(name=BRIEF.name, title=BRIEF.title, description=BRIEF.about, arguments=[]),
        types.Prompt(
            name="context_pack",
            title="Context pack for a task",
            description="Begin a task with what is known for it, and with the files that would settle it.",
            arguments=[
                types.PromptArgument(name="task", description="What is to be done or known.", required=True),
                types.PromptArgument(
                    name="intent",
                    description="current_truth, reasoning_archive or blended; read from the task by default.",
                    required=False,
                ),
                types.PromptArgument(name="project", description="Another project's key or name.", required=False),
            ],
        ),
    ]
)


def checked(name: str) -> str:
    """The tool behind a prompt. Raises: MCPError naming the prompts there are."""
    known = [prompt.name for prompt in LISTED.prompts]
    if name not in known:
        told = f"There is no prompt {one_line(name, 64)}. The prompts are: {', '.join(known)}."
        raise MCPError(code=types.INVALID_PARAMS, message=told)
    return name


def shown(task: str, answer: types.CallToolResult) -> types.GetPromptResult:
    """A tool's answer as a message, after the task if there is one. Raises: MCPError saying what was wrong."""
    text = "\n".join(block.text for block in answer.content if isinstance(block, types.TextContent))
    if answer.is_error:
        raise MCPError(code=types.INVALID_PARAMS, message=text)
    said = f"{task}\n\nWhat the memory has for this:\n\n{text}" if task else text
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=said))
    return types.GetPromptResult(messages=[message])
