"""The hooks that each client is given: its events, their limits, and the shape of an entry. Data; nothing is run.

Knows nothing about which file they go into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grounded_mcp.clients.program import HOOK_TOOL, NAME, Program
from grounded_mcp.clients.splicing import Entry

# Each event and its limit in seconds, or milliseconds for Gemini CLI. A prompt waits for the hook, the end of a
# session is given more.
CLAUDE_EVENTS = {"SessionStart": 5, "UserPromptSubmit": 3, "PreCompact": 5, "Stop": 5, "SessionEnd": 10}
GEMINI_EVENTS = {
    "SessionStart": 5_000,
    "BeforeAgent": 3_000,
    "PreCompress": 5_000,
    "AfterAgent": 5_000,
    "SessionEnd": 10_000,
}
COPILOT_EVENTS = {"sessionStart": 5, "userPromptSubmitted": 3, "preCompact": 5, "agentStop": 5, "sessionEnd": 10}
CURSOR_EVENTS = {"sessionStart": 5, "beforeSubmitPrompt": 3, "preCompact": 5, "stop": 5, "sessionEnd": 10}

GEMINI_MATCHERS = {"PreCompress": "manual"}
"""Gemini CLI announces a compression before every message, and means it when it was asked for one."""

SENT = {
    "hook_event_name": "${hook_event_name}",
    "session_id": "${session_id}",
    "cwd": "${cwd}",
    "prompt": "${prompt}",
}
"""What a hook that calls a tool passes on of the event; the client fills it in."""


def claude(program: Program) -> tuple[Entry, ...]:
    return tuple(_group(event, [_claude_hook(program, event, "claude-code")]) for event in CLAUDE_EVENTS)


def codex(program: Program) -> tuple[Entry, ...]:
    return tuple(_group(event, [_claude_hook(program, event, "codex")]) for event in CLAUDE_EVENTS)


def qwen(program: Program) -> tuple[Entry, ...]:
    return tuple(_group(event, [_command(program, event, "qwen")]) for event in CLAUDE_EVENTS)


def gemini(program: Program) -> tuple[Entry, ...]:
    return tuple(
        _group(
            event,
            [
                {
                    "type": "command",
                    "command": program.hook(event, "gemini"),
                    "name": NAME,
                    "timeout": limit,
                }
            ],
            matcher=GEMINI_MATCHERS.get(event, "*"),
        )
        for event, limit in GEMINI_EVENTS.items()
    )


def cursor(program: Program) -> tuple[Entry, ...]:
    return _versioned(CURSOR_EVENTS, lambda event, limit: {"command": program.hook(event, "cursor"), "timeout": limit})


def copilot(program: Program) -> tuple[Entry, ...]:
    def hook(event: str, limit: float) -> dict[str, Any]:
        line = program.hook(event, "copilot")
        return {"type": "command", "bash": line, "powershell": f"& {line}", "timeoutSec": limit}

    return _versioned(COPILOT_EVENTS, hook)


def tool_hook(client: str, server: str = NAME) -> dict[str, Any]:
    """A prompt's hook that asks the server that runs. Versions that do not know it drop the whole file it is in."""
    asked = {**SENT, "client": client}
    return {
        "type": "mcp_tool",
        "server": server,
        "tool": HOOK_TOOL,
        "input": asked,
        "timeout": CLAUDE_EVENTS["UserPromptSubmit"],
    }


def _claude_hook(program: Program, event: str, client: str) -> dict[str, Any]:
    if program.tool_hooks and event == "UserPromptSubmit":
        return tool_hook(client)
    return _command(program, event, client)


def _command(program: Program, event: str, client: str) -> dict[str, Any]:
    return {"type": "command", "command": program.hook(event, client), "timeout": CLAUDE_EVENTS[event]}


def _group(event: str, hooks: list[dict[str, Any]], **more: str) -> Entry:
    """Hooks as Claude Code has them: groups with a list of commands in each."""
    return Entry(("hooks", event), {**more, "hooks": hooks}, "item")


def _versioned(events: Mapping[str, float], hook: Callable[[str, float], Any]) -> tuple[Entry, ...]:
    """Hooks as Cursor and Copilot have them: a versioned file with a list for each event."""
    items = (Entry(("hooks", event), hook(event, limit), "item") for event, limit in events.items())
    return (Entry(("version",), 1, "default"), *items)
