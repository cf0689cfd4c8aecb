"""Sessions of Gemini CLI: ``~/.gemini/tmp/<project>/chats/session-*.jsonl``, or one JSON document in older versions.

The newer file is a log: a message is written again whenever its tool calls, results or tokens change (the last version
counts, in the place of the first), ``$rewindTo`` takes a message and all after it back, and ``$set`` changes what is
known of the session. ``$set.messages`` is what the model was to see from then on, after a compression for example, and
not what was said; only a file that has no messages of its own is read from it. A first look over the log finds out.
Which project a session belongs to is ``gemini_project``'s concern.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.documents_json import load, mapping, mappings, text
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.gemini_project import project_root
from grounded_mcp.ingest.transcripts.genai import CANCELLED, answers, calls, outcome, words
from grounded_mcp.ingest.transcripts.lines import records, stamp_of
from grounded_mcp.ingest.transcripts.turns import About, Event, Machine, Outcome, Start, Tally, Transcript, Turn, moment

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GeminiReader:
    agent: str = "gemini"

    def roots(self, machine: Machine) -> Sequence[Path]:
        return [Path(machine.env.get("GEMINI_CLI_HOME") or machine.home) / ".gemini" / "tmp"]

    def find(self, root: Path) -> Iterator[Transcript]:
        for path in files(root, "*.json", "*.jsonl"):
            if _is_session(path) or path.name == root.name:
                with suppress(OSError):  # gone since it was listed
                    yield Transcript(self.agent, path, stamp_of(path), size=path.stat().st_size)

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        if transcript.path.suffix == ".json":
            yield from _document(transcript.path, tally)
        else:
            yield from _log(transcript.path, start.offset, tally)


READER = GeminiReader()


def _is_session(path: Path) -> bool:
    """``chats/session-*``, or a subagent's ``chats/<session that started it>/<id>.jsonl``."""
    main = path.parent.name == "chats" and path.name.startswith("session-")
    return main or (path.parent.parent.name == "chats" and path.suffix == ".jsonl")


def _parent(path: Path) -> str | None:
    return path.parent.name if path.parent.parent.name == "chats" else None


# --- one document


def _document(path: Path, tally: Tally) -> Iterator[Event]:
    found = load(path, tally)
    if found is None:
        return
    document = mapping(found)
    listed = document.get("messages")
    if not isinstance(listed, list):
        tally.seen += 1
        tally.skip("unknown record", "byte 0")
        return
    session = text(document.get("sessionId")) or path.stem
    cwd = project_root(path, text(document.get("projectHash")), listed)
    yield About(session, cwd, title=text(document.get("summary")) or None, parent=_parent(path))
    answered = {id for message in mappings(listed) for id in _answered(message)}
    for place, message in enumerate(listed):
        tally.seen += 1
        turns, why = _turns(mapping(message), _Context(session, place, answered))
        yield from _counted(turns, why, tally, f"message {place}")


def _counted(turns: Sequence[Turn], why: str, tally: Tally, where: str) -> Sequence[Turn]:
    if turns:
        tally.kept += 1
    else:
        tally.skip(why, where)
    return turns


# --- a log


@dataclass(slots=True)
class _Log:
    """What a log comes to in the end. Places are bytes from the start of the file."""

    session: str = ""
    digest: str = ""
    title: str | None = None
    live: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Message id -> where its first and its last version lie, in the order of the first."""
    rewound: set[int] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    context: int | None = None
    """Where the last list of messages for the model lies."""
    changed: bool = False
    """Whether something before the asked offset was changed or taken back behind it."""
    end: int = 0

    @property
    def only_context(self) -> bool:
        return self.context is not None and not self.live and not self.rewound


def _log(path: Path, offset: int, tally: Tally) -> Iterator[Event]:
    log = _look(path, offset)
    session = log.session or path.stem
    said = (line.record for line in records(path, Tally()))
    yield About(session, project_root(path, log.digest, said), title=log.title, parent=_parent(path))
    versions = dict(log.live.values())
    for line in records(path, tally, 0 if log.changed else offset):
        if line.offset >= log.end:  # written since the first look: for the next time
            tally.seen, tally.end = tally.seen - 1, line.offset
            return
        record, where = line.record, f"byte {line.offset}"
        if log.only_context and line.offset == log.context:
            turns, why = _of_context(record, session), "no text"
        elif line.offset in versions:
            last = versions[line.offset]
            message = record if last == line.offset else _at(path, last)
            turns, why = _turns(message, _Context(session, line.offset, log.answered))
        else:
            turns, why = (), _why_not(record, line.offset, log)
        yield from _counted(turns, why, tally, where)


def _look(path: Path, offset: int) -> _Log:
    log, tally = _Log(), Tally()
    for line in records(path, tally):
        id, target = line.record.get("id"), line.record.get("$rewindTo")
        earliest = line.offset
        if isinstance(target, str):
            earliest = _rewind(log, target, line.offset)
        elif isinstance(id, str):
            earliest = log.live.get(id, (line.offset, 0))[0]
            log.live[id] = (earliest, line.offset)
            log.answered.update(_answered(line.record))
        else:
            _learn(log, line.record, line.offset)
        log.changed |= earliest < offset <= line.offset
    log.end = tally.end
    if log.only_context and (log.context or 0) >= offset:
        log.changed = True
    return log


def _rewind(log: _Log, target: str, offset: int) -> int:
    """Take back. A target that is not in the log was in a list for the model: what was said stays as it is."""
    if target not in log.live:
        return offset
    earliest = log.live[target][0]
    for id, (first, _) in list(log.live.items()):
        if first >= earliest:
            log.rewound.add(first)
            del log.live[id]
    return earliest


def _learn(log: _Log, record: Record, offset: int) -> None:
    told = mapping(record.get("$set")) or record
    log.session = log.session or text(told.get("sessionId"))
    log.digest = log.digest or text(told.get("projectHash"))
    log.title = text(told.get("summary")) or log.title
    if mappings(told.get("messages")):
        log.context = offset


def _of_context(record: Record, session: str) -> tuple[Turn, ...]:
    """The messages of a list for the model. Their places are ordinals: the list is always read as a whole."""
    told = mapping(record.get("$set")) or record
    listed = mappings(told.get("messages"))
    answered = {id for message in listed for id in _answered(message)}
    found = (_turns(message, _Context(session, place, answered))[0] for place, message in enumerate(listed))
    return tuple(turn for turns in found for turn in turns)


def _at(path: Path, offset: int) -> Record:
    return next((line.record for line in records(path, Tally(), offset)), {})


def _why_not(record: Record, offset: int, log: _Log) -> str:
    if isinstance(record.get("id"), str):
        return "rewound" if offset in log.rewound else "copy of an earlier record"
    return "host record" if {"$set", "$rewindTo", "sessionId"} & record.keys() else "unknown record"


# --- one message


class _Context(NamedTuple):
    session: str
    place: int
    answered: set[str]
    """Calls whose results lie with the call: a message of the same results is a copy."""


def _turns(message: Record, context: _Context) -> tuple[tuple[Turn, ...], str]:
    """The turns of a message; where there are none, why."""
    kind = text(message.get("type"))
    if kind not in ("user", "gemini"):
        return (), "host record" if kind in ("info", "warning", "error") else "unknown record"
    id = text(message.get("id")) or str(context.place)
    blank = Turn(context.session, f"{context.session}:{id}", "user", context.place, at=_time(message))
    if kind == "gemini":
        turns = [_agent(message, blank), _results(message, blank)]
    else:
        turns = [_user(message, blank), _copied_results(message, blank, context.answered)]
    kept = tuple(turn for turn in turns if turn is not None)
    return kept, "copy of an earlier record" if answers(message.get("content")) else "no text"


def _time(record: Record) -> float | None:
    return moment(record.get("timestamp"))


def _user(message: Record, blank: Turn) -> Turn | None:
    # "displayContent" is what was typed; "content" also holds the files and the hooks' output that went with it.
    said = words(message.get("displayContent"))
    said = said if said.strip() else words(message.get("content"))
    return replace(blank, text=said) if said.strip() else None


def _agent(message: Record, blank: Turn) -> Turn | None:
    said = words(message.get("content"))
    made = [
        call(text(each.get("id")), text(each.get("name")), each.get("args"))
        for each in mappings(message.get("toolCalls"))
    ]
    listed = {each.id for each in made}
    made += [each for each in calls(message.get("content")) if each.id not in listed]
    if not said.strip() and not made:
        return None
    return replace(blank, role="agent", text=said, calls=tuple(made), model=text(message.get("model")) or None)


def _results(message: Record, blank: Turn) -> Turn | None:
    made = mappings(message.get("toolCalls"))
    outcomes = tuple(found for each in made if (found := _result(each)) is not None)
    if not outcomes:
        return None
    return replace(
        blank,
        uid=f"{blank.uid}:results",
        role="tool",
        outcomes=outcomes,
        at=max((at for each in made if (at := _time(each)) is not None), default=blank.at),
        interrupted=any(each.get("status") == CANCELLED for each in made),
    )


def _result(made: Record) -> Outcome | None:
    """What came back for a call. A result that holds several responses is one answer."""
    status = text(made.get("status"))
    found = answers(made.get("result"), status)
    said = "\n".join(each.text for each in found) or words(made.get("result")) or text(made.get("resultDisplay"))
    if not found and not said and status not in ("success", "error", CANCELLED):
        return None  # still running
    ok = found[0].ok if found else {"success": True, "error": False}.get(status)
    return outcome(text(made.get("id")), text(made.get("name")), said, ok)


def _answered(message: Record) -> Iterator[str]:
    made = mappings(message.get("toolCalls"))
    return (text(each.get("id")) for each in made if each.get("result") or each.get("resultDisplay"))


def _copied_results(message: Record, blank: Turn, answered: set[str]) -> Turn | None:
    outcomes = tuple(each for each in answers(message.get("content")) if each.call not in answered)
    return replace(blank, uid=f"{blank.uid}:results", role="tool", outcomes=outcomes) if outcomes else None
