"""Sessions of Continue: ``~/.continue/sessions/<id>.json``, one JSON document each. No message bears a time.

``sessions.json`` beside them lists all sessions and says when each was begun, which is the time of its first turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.documents_json import beside, load, mapping, mappings, said, text
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.lines import stamp_of
from grounded_mcp.ingest.transcripts.turns import About, Event, Machine, Outcome, Start, Tally, Transcript, Turn, moment

_LIST = "sessions.json"
_UNTITLED = ("Untitled Session", "New Session", "")
_CANCELED = "canceled"
_ENDED: Mapping[str, bool | None] = {"done": True, "errored": False, _CANCELED: None}
_DRIVE = re.compile(r"/[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class ContinueReader:
    agent: str = "continue"

    def roots(self, machine: Machine) -> Sequence[Path]:
        return [Path(machine.env.get("CONTINUE_GLOBAL_DIR") or machine.home / ".continue") / "sessions"]

    def find(self, root: Path) -> Iterator[Transcript]:
        for path in files(root, "*.json"):
            if path.name != _LIST:
                with suppress(OSError):  # gone since it was listed
                    yield Transcript(self.agent, path, stamp_of(path), size=path.stat().st_size)

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        found = load(transcript.path, tally)
        if found is None:
            return
        document = mapping(found)
        history = document.get("history")
        if not isinstance(history, list):
            tally.seen += 1
            tally.skip("unknown record", "byte 0")
            return
        about = _about(transcript.path, document)
        yield about
        begun: float | None = _begun(transcript.path, about.session)
        answered = {id for item in mappings(history) for id in _answered(item)}
        for place, item in enumerate(history):
            tally.seen += 1
            blank = Turn(about.session, f"{about.session}:{place}", "user", place, at=begun)
            turns, why = _turns(mapping(item), blank, answered, text(document.get("chatModelTitle")))
            if turns:
                tally.kept, begun = tally.kept + 1, None
                yield from turns
            else:
                tally.skip(why, f"message {place}")


READER = ContinueReader()


def _about(path: Path, document: Mapping[str, Any]) -> About:
    title = text(document.get("title"))
    cwd = _folder(text(document.get("workspaceDirectory")))
    return About(text(document.get("sessionId")) or path.stem, cwd or None, title=None if title in _UNTITLED else title)


def _folder(given: str) -> str:
    """A path, which the editors write as ``file:///home/me/app`` or ``file:///c%3A/app``."""
    if not given.startswith("file://"):
        return given
    path = unquote(given.removeprefix("file://"))
    return path[1:] if _DRIVE.match(path) else path


def _begun(path: Path, session: str) -> float | None:
    listed = mappings(beside(path.with_name(_LIST)))
    mine = next((each for each in listed if each.get("sessionId") == session), {})
    return moment(mine.get("dateCreated"))


def _turns(item: Mapping[str, Any], blank: Turn, answered: set[str], model: str) -> tuple[list[Turn], str]:
    message = mapping(item.get("message"))
    role = text(message.get("role"))
    words = _words(message.get("content"))
    if role == "user":
        return ([replace(blank, text=words)] if words.strip() else []), "no text"
    if role == "assistant":
        return _agent(item, replace(blank, text=words), model), "no text"
    if role == "tool":
        id = text(message.get("toolCallId"))
        if id in answered:
            return [], "copy of an earlier record"
        return [replace(blank, role="tool", outcomes=(Outcome(id, words),))], ""
    known = {"system": "host record", "thinking": "no text"}
    return [], known.get(role, "unknown record")


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return said([text(part.get("text")) for part in mappings(content)])


def _agent(item: Mapping[str, Any], blank: Turn, model: str) -> list[Turn]:
    message, states = mapping(item.get("message")), _states(item)
    asked = [*mappings(message.get("toolCalls")), *(mapping(state.get("toolCall")) for state in states)]
    calls = {}
    for each in asked:
        function, id = mapping(each.get("function")), text(each.get("id"))
        if function and id not in calls:
            calls[id] = call(id, text(function.get("name")), function.get("arguments"))
    outcomes = tuple(found for state in states if (found := _outcome(state)) is not None)
    turns = []
    if blank.text.strip() or calls:
        named = text(mapping(message.get("usage")).get("model")) or _logged_model(item) or model
        turns.append(replace(blank, role="agent", calls=tuple(calls.values()), model=named or None))
    if outcomes:
        stopped = any(state.get("status") == _CANCELED for state in states)
        tool = replace(blank, uid=f"{blank.uid}:results", role="tool", text="", outcomes=outcomes, interrupted=stopped)
        turns.append(tool)
    return turns


def _logged_model(item: Mapping[str, Any]) -> str:
    return next((text(log.get("modelTitle")) for log in mappings(item.get("promptLogs"))), "")


def _states(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """How the calls of an item went. Earlier versions had one, under another name."""
    return mappings(item.get("toolCallStates")) or mappings([item.get("toolCallState")])


def _answered(item: Mapping[str, Any]) -> Iterator[str]:
    return (found.call for state in _states(item) if (found := _outcome(state)) is not None)


def _outcome(state: Mapping[str, Any]) -> Outcome | None:
    status, output = text(state.get("status")), mappings(state.get("output"))
    if status not in _ENDED and not output:
        return None  # still running
    words = said([_shown(text(each.get("content"))) for each in output])
    return Outcome(text(state.get("toolCallId")), words, ok=_ENDED.get(status))


def _shown(words: str) -> str:
    """The command line writes the parts of a tool server's answer as JSON into the text."""
    if not words.startswith("["):
        return words
    try:
        parts = mappings(json.loads(words))
    except (ValueError, RecursionError):
        return words
    is_answer = parts and all(part.get("type") == "text" for part in parts)
    return _words(parts) if is_answer else words
