"""Every agent whose sessions are read, by name. A reader's module is imported when it is first wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import cast

from grounded_mcp.errors import InputError
from grounded_mcp.ingest.transcripts.turns import Reader

READERS: Mapping[str, str] = {
    "claude-code": "claude_code:READER",
    "codex": "codex:READER",
    "gemini": "gemini:READER",
    "opencode": "opencode:READER",
    "copilot": "copilot:READER",
    "qwen": "qwen:READER",
    "cursor": "cursor:READER",
    "cline": "cline:READER",
    "roo": "cline:ROO",
    "continue": "continue_dev:READER",
    "aider": "aider:READER",
    "specstory": "specstory:READER",
}
"""In the order they are read: SpecStory's files are copies of other agents' sessions, so they come last."""


def reader(agent: str) -> Reader:
    """One agent's reader. Raises: InputError for an unknown name."""
    where = READERS.get(agent)
    if where is None:
        raise InputError(
            "agent", f"{agent!r} is not an agent that is known here.", f"Choose from {', '.join(READERS)}."
        )
    module, _, name = where.partition(":")
    return cast("Reader", getattr(import_module(f"grounded_mcp.ingest.transcripts.{module}"), name))


def readers(agents: Sequence[str]) -> tuple[Reader, ...]:
    """Readers in the table's order. Raises: InputError for an unknown name."""
    found = {agent: reader(agent) for agent in agents}
    return tuple(found[agent] for agent in READERS if agent in found)
