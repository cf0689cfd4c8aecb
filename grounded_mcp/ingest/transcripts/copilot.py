"""Copilot CLI's sessions: ``session-state/<id>/events.jsonl`` in its home, or ``session-state/<id>.jsonl`` earlier.

Each event has an id of its own. What the person typed is ``content``; ``transformedContent`` is that with what the
host added. Rewinding rewrites the file without what was taken back. What a session's subagents said and did stands in
between and is left out: what they report is the outcome of the call that started them.
Knows nothing about other agents' formats, and reads no database of Copilot's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from grounded_mcp.ingest.transcripts import calls, finding, lines
from grounded_mcp.ingest.transcripts.turns import (
    About,
    Call,
    Event,
    Machine,
    Outcome,
    Role,
    Start,
    Tally,
    Transcript,
    Turn,
    moment,
)

Payload = Mapping[str, Any]

_FILE = "events.jsonl"
_WORKSPACE = "workspace.yaml"
_WORKSPACE_BYTES = 64 * 1024
_HEADER_RECORDS = 20
"""``session.start`` is the first event; a few may be unreadable."""

_HOST_SOURCES = ("autopilot", "command", "hook", "schedule", "skill", "system")
"""How the ``source`` of a message begins that nobody typed: a skill's text, an autopilot's "go on"."""
_HOST_EVENTS = (
    "assistant.turn_start", "assistant.turn_end", "assistant.turn_retry", "assistant.intent", "assistant.reasoning",
    "assistant.usage", "assistant.idle", "assistant.message_start", "tool.execution_start", "tool.user_requested",
    "tool.execution_progress", "tool.execution_partial_result", "tool.shell_output",
    "auto_mode_switch.", "command.", "commands.", "elicitation.", "exit_plan_mode.", "external_tool.", "hook.",
    "mcp.", "model.", "pending_messages.", "permission.", "sampling.", "session.", "skill.", "subagent.", "system.",
    "tool_search.", "user_input.", "workflow.",
)  # fmt: skip
"""Events that are not conversation, by name or by what all names of their kind begin with."""
_EXIT_CODE = re.compile(r"^<(?:exited|shellId: [^<>\n]* completed) with exit code (-?\d{1,10})>\s*$", re.MULTILINE)
_TAIL = 4_000
"""Characters of a command's output in which its exit code is looked for: the last line, save for what hooks add."""


@dataclass(frozen=True, slots=True)
class CopilotReader:
    """Sessions of Copilot CLI. ``COPILOT_HOME`` stands for ``~/.copilot``."""

    agent: str = "copilot"

    def roots(self, machine: Machine) -> Sequence[Path]:
        home = machine.env.get("COPILOT_HOME", "").strip()
        return [(Path(home) if home else machine.home / ".copilot") / "session-state"]

    def find(self, root: Path) -> Iterator[Transcript]:
        for path in finding.files(root, "*.jsonl"):
            # Deeper than at the top, others are files that the agent made in a session's folder.
            if path.name != _FILE and len(path.relative_to(root.resolve()).parts) > 1:
                continue
            try:
                yield Transcript(self.agent, path, lines.stamp_of(path), size=path.stat().st_size)
            except OSError:  # gone since it was listed
                continue

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        path = transcript.path
        about = _about(path)
        yield about
        begin = start.offset if _stands(path, start) else 0
        for at, record in lines.records(path, tally, begin):
            kind, data = _text(record.get("type")), _mapping(record.get("data"))
            if title := _text(data.get("title")) if kind == "session.title_changed" else "":
                yield About(about.session, title=title)
            said = _said(kind, record, data)
            if isinstance(said, str):
                tally.skip(said, f"byte {at}")
                continue
            tally.kept += 1
            yield _turn(about.session, at, record, said)


READER = CopilotReader()


def _about(path: Path) -> About:
    head = (line.record for line in islice(lines.records(path, Tally()), _HEADER_RECORDS))
    data = next((_mapping(record.get("data")) for record in head if record.get("type") == "session.start"), {})
    context = _mapping(data.get("context"))
    session = _text(data.get("sessionId")) or (path.parent.name if path.name == _FILE else path.stem)
    cwd = _text(context.get("cwd")) or _workspace_cwd(path.with_name(_WORKSPACE))
    return About(session, cwd or None, _text(context.get("branch")) or None)


def _workspace_cwd(path: Path) -> str:
    """The ``cwd:`` line of ``workspace.yaml``, which holds one plain or quoted value a line; "" without one."""
    try:
        if path.is_symlink():
            return ""
        with lines.open_plain(path) as file:
            text = file.read(_WORKSPACE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    value = next((line.removeprefix("cwd:").strip() for line in text.splitlines() if line.startswith("cwd:")), "")
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _stands(path: Path, start: Start) -> bool:
    """Whether reading can go on where it ended: the file was not rewritten without the turn that came before."""
    if not start.offset:
        return False
    tip, at = f'"{start.tip}"'.encode("utf-8", "surrogatepass") if start.tip else b"", 0
    with lines.open_plain(path) as file:
        file.seek(start.offset - 1)
        border = file.read(2)
        if not border or not (border[:1] == b"\n" or border[1:] in (b"", b"\n")):
            return False
        file.seek(0)
        while at < start.offset and (raw := file.readline(lines.MAX_LINE_BYTES + 1)):
            if tip in raw:
                return True
            at += len(raw)
    return False


class _Said(NamedTuple):
    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    interrupted: bool = False


def _turn(session: str, at: int, record: Payload, said: _Said) -> Turn:
    model = _text(_mapping(record.get("data")).get("model")) if said.role == "agent" else ""
    return Turn(
        session,
        _text(record.get("id")) or f"{session}@{at}",
        said.role,
        at,
        said.text,
        moment(record.get("timestamp")),
        model or None,
        said.calls,
        said.outcomes,
        said.interrupted,
    )


def _said(kind: str, record: Payload, data: Payload) -> _Said | str:
    """What an event adds to the conversation, or why it adds nothing."""
    told = _EVENTS.get(kind)
    if told is None:
        return "host record" if kind.startswith(_HOST_EVENTS) else "unknown record"
    if record.get("agentId") or data.get("parentToolCallId"):
        return "record of a subagent"
    return told(data)


def _user(data: Payload) -> _Said | str:
    if _text(data.get("source")).startswith(_HOST_SOURCES) or data.get("isAutopilotContinuation") is True:
        return "host record"
    text = _text(data.get("content"))
    return _Said("user", text) if text.strip() else "no text"


def _assistant(data: Payload) -> _Said | str:
    requests = data.get("toolRequests")
    made = tuple(
        calls.call(_text(each.get("toolCallId")), _text(each.get("name")), each.get("arguments"))
        for each in (requests if isinstance(requests, list) else [])
        if isinstance(each, dict)
    )
    text = _text(data.get("content"))
    return _Said("agent", text if text.strip() else "", made) if text.strip() or made else "no text"


def _completed(data: Payload) -> _Said | str:
    if data.get("isUserRequested") is True:
        return "host record"
    result, success = data.get("result"), data.get("success")
    given = _mapping(result)
    # ``content`` went to the model, with what hooks put behind it.
    shown = _text(given.get("detailedContent")) or _text(given.get("content")) or _text(result)
    text = shown or _text(_mapping(data.get("error")).get("message"))
    codes = _EXIT_CODE.findall(text[-_TAIL:]) or _EXIT_CODE.findall(_text(given.get("content"))[-_TAIL:])
    code = int(codes[-1]) if codes else None
    went_well = success if isinstance(success, bool) else None
    ok = went_well if code is None else code == 0
    return _Said("tool", outcomes=(Outcome(_text(data.get("toolCallId")), text, ok, code),))


def _aborted(data: Payload) -> _Said:
    return _Said("agent", interrupted=True)


_EVENTS: Mapping[str, Callable[[Payload], _Said | str]] = {
    "user.message": _user,
    "assistant.message": _assistant,
    "tool.execution_complete": _completed,
    "abort": _aborted,
}


def _mapping(value: object) -> Payload:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
