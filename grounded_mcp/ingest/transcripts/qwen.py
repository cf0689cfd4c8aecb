"""Sessions of Qwen Code: ``~/.qwen/projects/<folder>/chats/<session>.jsonl``, one record a line.

Records are appended and name their parent. A rewind goes on from an earlier record, so what lies between is no longer
part of the conversation; a first look over the file finds out. Subagents have files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grounded_mcp.ingest.transcripts.documents_json import mapping, text
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.genai import CANCELLED, answers, calls, words
from grounded_mcp.ingest.transcripts.lines import Line, records, stamp_of
from grounded_mcp.ingest.transcripts.turns import About, Event, Machine, Start, Tally, Transcript, Turn, moment

# What the host wrote in the person's name.
_NOT_TYPED = ("notification", "cron", "goal_runtime", "agent_launch_prompt", "background_task_completed")


@dataclass(frozen=True, slots=True)
class QwenReader:
    agent: str = "qwen"

    def roots(self, machine: Machine) -> Sequence[Path]:
        env = machine.env
        base = Path(env.get("QWEN_RUNTIME_DIR") or env.get("QWEN_HOME") or machine.home / ".qwen")
        return [base / "projects", base / "tmp"]  # "tmp" before version 0.6

    def find(self, root: Path) -> Iterator[Transcript]:
        for path in files(root, "*.jsonl"):
            if path.parent.name == "chats" or path.parent.parent.name == "subagents" or path.name == root.name:
                with suppress(OSError):  # gone since it was listed
                    yield Transcript(self.agent, path, stamp_of(path), size=path.stat().st_size)

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        whole = _look(transcript.path)
        yield whole.about
        offset = 0 if whole.took_back(start.offset) else start.offset
        for line in records(transcript.path, tally, offset):
            if line.offset >= whole.end:  # written since the first look: for the next time
                tally.seen, tally.end = tally.seen - 1, line.offset
                return
            turn, why = _turn(line, whole)
            if turn is None:
                tally.skip(why, f"byte {line.offset}")
            else:
                tally.kept += 1
                yield turn


READER = QwenReader()


@dataclass(slots=True)
class _Whole:
    """What a first look over a file says: about the session, and which records no longer count."""

    about: About
    first: dict[str, int] = field(default_factory=dict)
    """Where a record id appears first, in bytes."""
    rewinds: list[tuple[int, int]] = field(default_factory=list)
    """Where the record lies that a rewind went back to, and where the rewind itself."""
    end: int = 0

    def took_back(self, offset: int) -> bool:
        """Whether something before ``offset`` was taken back behind it."""
        return any(kept < offset <= at for kept, at in self.rewinds)

    def rewound(self, offset: int) -> bool:
        return any(kept < offset < at for kept, at in self.rewinds)


def _look(path: Path) -> _Whole:
    tally = Tally()
    whole = _Whole(About(path.stem))
    named = False
    for line in records(path, tally):
        record = line.record
        if not named and text(record.get("sessionId")):
            whole.about, named = _session(record), True
        whole.about = _told(whole.about, record)
        if record.get("subtype") == "rewind":
            parent = record.get("parentUuid")
            kept = -1 if parent is None else whole.first.get(text(parent))
            whole.rewinds += [] if kept is None else [(kept, line.offset)]
        whole.first.setdefault(text(record.get("uuid")), line.offset)
    whole.end = tally.end
    return whole


def _session(record: Mapping[str, Any]) -> About:
    """A subagent's records bear the session of the agent that started it."""
    session, agent = text(record.get("sessionId")), text(record.get("agentId"))
    if agent and record.get("isSidechain"):
        return About(f"{session}:{agent}", parent=session)
    return About(session)


def _told(about: About, record: Mapping[str, Any]) -> About:
    payload = mapping(record.get("systemPayload"))
    return replace(
        about,
        cwd=about.cwd or text(record.get("cwd")) or None,
        branch=text(record.get("gitBranch")) or about.branch,
        title=text(payload.get("customTitle")) or about.title,
        parent=about.parent or text(payload.get("parentSessionId")) or None,
    )


def _turn(line: Line, whole: _Whole) -> tuple[Turn | None, str]:
    """The turn of a record, or None and why there is none."""
    record, kind = line.record, text(line.record.get("type"))
    if kind == "system":
        return None, "host record"
    if kind not in _READ:
        return None, "unknown record"
    id = text(record.get("uuid"))
    if id and whole.first.get(id) != line.offset:
        return None, "copy of an earlier record"
    if whole.rewound(line.offset):
        return None, "rewound"
    session = whole.about.session
    at = moment(record.get("timestamp"))
    blank = Turn(session, id or f"{session}:{line.offset}", "user", line.offset, at=at)
    return _READ[kind](record, mapping(record.get("message")).get("parts"), blank)


def _typed(record: Mapping[str, Any], parts: object, blank: Turn) -> tuple[Turn | None, str]:
    if text(record.get("subtype")) in _NOT_TYPED or record.get("provenance", "real_user") != "real_user":
        return None, "host record"
    shown = text(mapping(record.get("systemPayload")).get("displayText"))  # without files and hooks that were added
    said = shown if shown.strip() else words(parts)
    return (replace(blank, text=said), "") if said.strip() else (None, "no text")


def _answered(record: Mapping[str, Any], parts: object, blank: Turn) -> tuple[Turn | None, str]:
    said, asked = words(parts), tuple(calls(parts))
    if not said.strip() and not asked:
        return None, "no text"
    return replace(blank, role="agent", text=said, calls=asked, model=text(record.get("model")) or None), ""


def _came_back(record: Mapping[str, Any], parts: object, blank: Turn) -> tuple[Turn | None, str]:
    status = mapping(record.get("toolCallResult")).get("status")
    outcomes = tuple(answers(parts, status))
    if not outcomes:
        return None, "no text"
    return replace(blank, role="tool", outcomes=outcomes, interrupted=status == CANCELLED), ""


_READ = {"user": _typed, "assistant": _answered, "tool_result": _came_back}
