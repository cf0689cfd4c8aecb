"""The JSON lines that Cursor's agents leave in ``~/.cursor/projects/<project>/agent-transcripts/``.

``<session>.jsonl``, or ``<session>/<session>.jsonl`` with ``subagents/`` beside it. They hold what was said and which
tools were called, and neither times nor results. A folder's name stands for a path, but does not tell it.
Knows nothing about the editor's database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.databases import parsed, words
from grounded_mcp.ingest.transcripts.documents_json import beside
from grounded_mcp.ingest.transcripts.lines import Line, records
from grounded_mcp.ingest.transcripts.turns import About, Event, Outcome, Role, Start, Tally, Turn, moment

FOLDER = "agent-transcripts"


def turns_of(path: Path, start: Start, tally: Tally, is_copy: bool) -> Iterator[Event]:
    """The session and its turns. ``is_copy``: they are known from elsewhere, and are only counted. Raises: OSError."""
    session = path.stem
    parent = path.parent.parent.name if path.parent.name == "subagents" else None
    if not is_copy:
        yield About(session, cwd=_trusted(path), parent=parent)
    for line in records(path, tally, start.offset):
        reason = "copy of an earlier record" if is_copy else _why_not(line.record)
        turns = [] if reason else _of_line(session, line)
        if turns:
            tally.kept += 1
        else:
            tally.skip(reason or "no text", f"byte {line.offset}")
        yield from turns


def _why_not(record: Mapping[str, Any]) -> str:
    if record.get("role") in ("user", "assistant"):
        return ""
    if record.get("type") == "turn_ended":
        return "" if record.get("status") == "aborted" else "host record"
    return "host record" if record.get("role") == "system" or record.get("type") == "error" else "unknown record"


def _of_line(session: str, line: Line) -> list[Turn]:
    record, uid = line.record, words(line.record.get("id")) or f"{session}:{line.offset}"
    if record.get("role") not in ("user", "assistant"):
        return [Turn(session, uid, "agent", line.offset, interrupted=True)]
    content = parsed(record.get("message")).get("content")
    blocks = [parsed(each) for each in content] if isinstance(content, list) else []
    calls = tuple(
        call(words(block.get("id")) or f"{uid}:{at}", words(block.get("name")) or "tool", block.get("input"))
        for at, block in enumerate(blocks)
        if block.get("type") == "tool_use"
    )
    outcomes = tuple(
        Outcome(
            words(block.get("tool_use_id")),
            words(block.get("content")) or said_in(block.get("content")),
            not block.get("is_error"),
        )
        for block in blocks
        if block.get("type") == "tool_result"
    )
    said, time = words(content) or said_in(content), moment(record.get("timestamp"))
    turns = [Turn(session, f"{uid}:results", "tool", line.offset, at=time, outcomes=outcomes)] if outcomes else []
    if said or calls:
        role: Role = "user" if record["role"] == "user" else "agent"
        turns.append(Turn(session, uid, role, line.offset, said, time, calls=calls))
    return turns


def said_in(blocks: object) -> str:
    """The texts in a list of content blocks; empty if it is no such list."""
    known = [parsed(block) for block in blocks] if isinstance(blocks, list) else []
    texts = [words(block.get("text")) for block in known if block.get("type", "text") == "text"]
    return "\n\n".join(each for each in texts if each)


def _trusted(path: Path) -> str | None:
    """The folder a project stands for, from the file that says it is trusted; the folder's name does not tell it."""
    above = next((folder.parent for folder in path.parents if folder.name == FOLDER), path.parent)
    return words(parsed(beside(above / ".workspace-trusted")).get("workspacePath")) or None
