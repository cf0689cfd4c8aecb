"""opencode: an SQLite database of sessions, messages and parts; before that, one JSON file for each of them.

Sources: ``session/message-v2.ts``, ``session/revert.ts`` and ``storage/json-migration.ts`` of opencode, and a database
that opencode 1.18.33 wrote. The database also holds accounts and credentials: ``TABLES`` is all that is ever read.
Knows nothing about projects or what becomes of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.databases import MAX_VALUE, Rows, opened, parsed, words
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.lines import open_plain, stamp_of
from grounded_mcp.ingest.transcripts.turns import (
    About,
    Call,
    Event,
    Machine,
    Outcome,
    Start,
    Tally,
    Transcript,
    Turn,
    moment,
)

AGENT = "opencode"
TABLES = ("session", "message", "part")
_DATABASES = "opencode*.db"
"""``opencode.db``, and ``opencode-<channel>.db`` of other release channels."""
_UNNAMED = ("New session - ", "Child session - ")
_HOST_PARTS = ("compaction", "subtask")
_QUIET_PARTS = ("reasoning", "step-start", "step-finish", "snapshot", "patch", "file", "agent", "retry")
_TOLD_PARTS = ("text", "tool")
_Part = tuple[str, dict[str, Any]]
"""A part's id, and what is in it."""

# Counts come from indexes; a message's time is in its row's first bytes. Neither reads what was said.
_SESSIONS = """
    SELECT s.id, s.time_updated,
           (SELECT count(*) FROM message m WHERE m.session_id = s.id),
           (SELECT max(m.time_updated) FROM message m WHERE m.session_id = s.id),
           (SELECT count(*) FROM part p WHERE p.session_id = s.id)
    FROM session s ORDER BY s.time_updated, s.id"""
_SESSION = "SELECT directory, title, parent_id, revert FROM session WHERE id = ?"
_MESSAGES = "SELECT id FROM message WHERE session_id = ? ORDER BY time_created, id"
_MESSAGE = "SELECT CASE WHEN length(data) <= ? THEN data ELSE length(data) END FROM message WHERE id = ?"
_PARTS = """
    SELECT id, CASE WHEN length(data) <= ? THEN data ELSE length(data) END FROM part
    WHERE message_id = ? ORDER BY id"""


class OpencodeReader:
    """One transcript for each session; ``place`` is the ordinal of a message in its session."""

    agent = AGENT

    def roots(self, machine: Machine) -> Sequence[Path]:
        """The data folder (the same on every platform), and the database ``OPENCODE_DB`` names outside of it."""
        data = Path(machine.env.get("XDG_DATA_HOME") or machine.home / ".local" / "share") / "opencode"
        named = machine.env.get("OPENCODE_DB", "")
        other = data / named
        elsewhere = other.parent != data or not fnmatchcase(other.name, _DATABASES)
        return [data, other] if named not in ("", ":memory:") and elsewhere else [data]

    def find(self, root: Path) -> list[Transcript]:
        """Sessions of the databases in a data folder (or of the one that is ``root``), then those in JSON files.

        A database that cannot be read is one transcript without a ``part``: reading it says why.
        """
        found = [transcript for path in _databases(root) for transcript in _listed(path)]
        return found + [transcript for path in _stored(root) for transcript in _whole(path, _stamp)]

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        """Always from the beginning: what is in a database has no order on disk. Raises: OSError."""
        path = transcript.path
        if path.suffix == ".json":
            yield from _conversation(_from_files(path), tally)
            return
        with opened(path, TABLES) as rows:
            ids = [transcript.part] if transcript.part else [str(row[0]) for row in rows(_SESSIONS)]
            for id in ids:
                yield from _conversation(_from_database(rows, id), tally)


READER = OpencodeReader()


def _databases(root: Path) -> list[Path]:
    try:
        found = [root] if root.is_file() and root.suffix == ".db" else sorted(root.glob(_DATABASES))
        return [file for path in found if path == root or not path.is_symlink() for file in files(path, "*")]
    except OSError:
        return []


def _listed(path: Path) -> list[Transcript]:
    try:
        with opened(path, TABLES) as rows:
            return [
                Transcript(AGENT, path, ":".join(str(value or 0) for value in state), part=str(id))
                for id, *state in rows(_SESSIONS)
            ]
    except OSError:
        return _whole(path, stamp_of)


def _whole(path: Path, stamp: Callable[[Path], str]) -> list[Transcript]:
    """A file as one transcript; none if it is gone by now."""
    try:
        return [Transcript(AGENT, path, stamp(path), size=path.stat().st_size)]
    except OSError:
        return []


def _stored(root: Path) -> list[Path]:
    """Session files: ``storage/session/<project>/<session>.json``."""
    if root.suffix == ".json":
        return files(root, "*.json")
    storage = root if root.name == "storage" else root / "storage"
    return _own(storage / "session") if root == storage or not _is_link(storage) else []


def _stamp(session: Path) -> str:
    """A session file is rewritten with every prompt, a message's file when the message is complete."""
    messages = _own(_storage(session) / "message" / session.stem)
    return ":".join([stamp_of(session), str(len(messages)), *(stamp_of(path) for path in messages[-1:])])


def _own(folder: Path) -> list[Path]:
    return [] if _is_link(folder) else files(folder, "*.json")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return True


def _storage(session: Path) -> Path:
    return session.parent.parent.parent


@dataclass(frozen=True, slots=True)
class _Session:
    """A session, from wherever it is kept. A value is JSON text, or its length where it is too long."""

    id: str
    about: dict[str, Any]
    messages: Sequence[str]
    message: Callable[[str], object]
    parts: Callable[[str], Iterator[tuple[str, object]]]


def _from_database(rows: Rows, id: str) -> _Session:
    names = ("directory", "title", "parentID", "revert")
    about = next((dict(zip(names, row, strict=True)) for row in list(rows(_SESSION, id))), {})
    return _Session(
        id=id,
        about=about,
        messages=[str(row[0]) for row in rows(_MESSAGES, id)],
        message=lambda message: next((row[0] for row in list(rows(_MESSAGE, MAX_VALUE, message))), None),
        parts=lambda message: ((str(part), data) for part, data in rows(_PARTS, MAX_VALUE, message)),
    )


def _from_files(session: Path) -> _Session:
    storage = _storage(session)
    messages = storage / "message" / session.stem

    def parts(message: str) -> Iterator[tuple[str, object]]:
        for path in sorted(_own(storage / "part" / message)):
            yield path.stem, _document(path)

    return _Session(
        id=session.stem,
        about=parsed(_document(session)),
        messages=sorted(path.stem for path in _own(messages)),
        message=lambda message: _document(messages / f"{message}.json"),
        parts=parts,
    )


def _conversation(session: _Session, tally: Tally) -> Iterator[Event]:
    title, cwd = words(session.about.get("title")), words(session.about.get("directory"))
    yield About(
        session.id,
        cwd=cwd or None,
        title=None if not title or title.startswith(_UNNAMED) else title,
        parent=words(session.about.get("parentID")) or None,
    )
    revert = parsed(session.about.get("revert"))
    rewound = False
    for place, id in enumerate(session.messages):
        tally.seen += 1
        where, until = f"message {place + 1}", ""
        if id == revert.get("messageID"):
            until = words(revert.get("partID"))
            rewound = not until
        data = session.message(id)
        message = _Message(session.id, id, place, parsed(data))
        reason = "rewound" if rewound else _unfit(data, message, last=place + 1 == len(session.messages))
        if reason:
            tally.skip(reason, where)
            continue
        turns = _turns(message, session.parts(id), until, tally)
        tally.kept += bool(turns)
        if not turns:
            tally.skip("host record" if message.has_host_parts else "no text", where)
        if not cwd and (cwd := words(parsed(message.data.get("path")).get("cwd"))):
            yield About(session.id, cwd=cwd)
        yield from turns
        rewound = rewound or bool(until)


@dataclass(slots=True)
class _Message:
    session: str
    id: str
    place: int
    data: dict[str, Any]
    has_host_parts: bool = field(default=False)
    """Whether it holds what opencode put in: file contents, a command's expansion, the mark of a compaction."""

    @property
    def at(self) -> float | None:
        return moment(parsed(self.data.get("time")).get("created"))


def _unfit(data: object, message: _Message, last: bool) -> str:
    """Why a message is not read, or nothing."""
    if isinstance(data, int):
        return "longer than the limit"
    if not message.data:
        return "not a JSON object"
    role, time = message.data.get("role"), parsed(message.data.get("time"))
    if role not in ("user", "assistant"):
        return "unknown record"
    if role == "user":
        return ""
    if message.data.get("summary") is True:
        return "host record"
    finished = "completed" in time or any(message.data.get(name) for name in ("finish", "error"))
    return "unfinished last line" if last and not finished else ""


def _turns(message: _Message, parts: Iterator[tuple[str, object]], until: str, tally: Tally) -> list[Turn]:
    """All turns of a message, before any of them is passed on: meanwhile the database is read, and may be locked."""
    known: list[_Part] = []
    for id, data in parts:
        if id == until:
            break
        part = parsed(data)
        reason = _unfit_part(data, part)
        if reason:
            tally.seen += 1
            tally.skip(reason, f"message {message.place + 1}")
        elif part.get("synthetic") or part.get("ignored") or part.get("type") in _HOST_PARTS:
            message.has_host_parts = True
        elif part.get("type") in _TOLD_PARTS:
            known.append((id, part))
    return _of_user(message, known) if message.data["role"] == "user" else _of_agent(message, known)


def _unfit_part(data: object, part: dict[str, Any]) -> str:
    if isinstance(data, int):
        return "longer than the limit"
    if not part:
        return "not a JSON object"
    return "" if part.get("type") in (*_TOLD_PARTS, *_HOST_PARTS, *_QUIET_PARTS) else "unknown record"


def _of_user(message: _Message, parts: Sequence[_Part]) -> list[Turn]:
    said = _joined(parts)
    return [Turn(message.session, message.id, "user", message.place, said, message.at)] if said else []


def _of_agent(message: _Message, parts: Sequence[_Part]) -> list[Turn]:
    turns = [turn for group in _steps(parts) for turn in _step(message, group)]
    if parsed(message.data.get("error")).get("name") == "MessageAbortedError":
        turns.append(Turn(message.session, message.id, "agent", message.place, at=message.at, interrupted=True))
    return turns


def _steps(parts: Sequence[_Part]) -> list[list[_Part]]:
    """What was said and what was called then; older versions keep several such steps in one message."""
    steps: list[list[_Part]] = []
    for id, part in parts:
        is_text = part["type"] == "text"
        if is_text and not words(part.get("text")):
            continue
        if not steps or (is_text and steps[-1][-1][1]["type"] == "tool"):
            steps.append([])
        steps[-1].append((id, part))
    return steps


def _step(message: _Message, parts: Sequence[_Part]) -> Iterator[Turn]:
    first, model = parts[0][0], words(message.data.get("modelID")) or None
    tools = [_tool(id, part) for id, part in parts if part["type"] == "tool"]
    yield Turn(
        *(message.session, first, "agent", message.place, _joined(parts), message.at, model),
        calls=tuple(made for made, _ in tools),
    )
    outcomes = tuple(outcome for _, outcome in tools if outcome is not None)
    if outcomes:
        yield Turn(message.session, f"{first}:results", "tool", message.place, at=message.at, outcomes=outcomes)


def _tool(id: str, part: dict[str, Any]) -> tuple[Call, Outcome | None]:
    """A call and what came back, if it did. The part's id is the call's: a provider's own may come twice."""
    state = parsed(part.get("state"))
    made = call(id, words(part.get("tool")) or "tool", state.get("input"))
    code = parsed(state.get("metadata")).get("exit")
    code = code if type(code) is int else None
    if state.get("status") == "error":
        return made, Outcome(id, words(state.get("error")), False, code)
    if state.get("status") == "completed":
        return made, Outcome(id, words(state.get("output")), code in (None, 0), code)
    return made, None


def _joined(parts: Sequence[_Part]) -> str:
    texts = [words(part.get("text")) for _, part in parts if part["type"] == "text"]
    return "\n\n".join(each for each in texts if each)


def _document(path: Path) -> object:
    """The bytes of a JSON file, or their number where they are too many. Raises: OSError, also for a link."""
    if path.is_symlink():
        raise OSError(f"{path.name} is a link")
    with open_plain(path) as file:
        raw = file.read(MAX_VALUE + 1)
    return raw if len(raw) <= MAX_VALUE else len(raw)
