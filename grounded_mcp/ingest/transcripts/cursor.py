"""Cursor: conversations in the editor's key-value database, and the JSON lines of ``cursor_lines``.

There is no published format; several independent public parsers agree on what is read here. A conversation is a
"composer", its messages are "bubbles", each a row of its own, in the order of the composer's headers. The editor's
database holds sign-in tokens in ``ItemTable``: that table is never read there.
Knows nothing about projects or what becomes of a turn.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.cursor_lines import FOLDER, said_in, turns_of
from grounded_mcp.ingest.transcripts.databases import MAX_VALUE, Rows, opened, parsed, words
from grounded_mcp.ingest.transcripts.documents_json import beside
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.lines import stamp_of
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

AGENT = "cursor"
TABLES = ("cursorDiskKV", "composerHeaders", "sqlite_master")
_DATABASE = "state.vscdb"
_FOLDERS = {"darwin": ("", "Library/Application Support"), "win32": ("APPDATA", "AppData/Roaming")}
_LINUX = ("XDG_CONFIG_HOME", ".config")

_COMPOSER = "composerData:"
_COMPOSERS = """
    SELECT rowid, key, CASE WHEN length(value) <= ? THEN value ELSE length(value) END FROM cursorDiskKV
    WHERE key >= 'composerData:' AND key < 'composerData;'"""
_ORDER = "fullConversationHeadersOnly"
_VALUE = "SELECT CASE WHEN length(value) <= ? THEN value ELSE length(value) END FROM cursorDiskKV WHERE key = ?"
_HAS_TABLE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
_HEAD = "SELECT workspaceId, value FROM composerHeaders WHERE composerId = ?"
_OF_WORKSPACE = "SELECT value FROM ItemTable WHERE key = 'composer.composerData' AND length(value) <= ?"

_USER, _AGENT = 1, 2
_COMPACTION = 22
"""``capabilityType`` of the bubble that marks where a conversation was summarized."""
_RUNNING = ("loading", "pending", "running", "generating")
_REFUSED = ("rejected", "skipped", "cancelled", "canceled", "aborted", "error", "failed")
_DONE = ("completed", "success")
_TOOLS = {5: "read_file", 7: "edit_file", 11: "delete_file", 15: "run_terminal_command_v2"}
"""``toolFormerData.tool`` where there is no name: numbers of Cursor's ``aiserver.v1.ClientSideToolV2``."""
_SHOWN = ("output", "contents", "content", "result")


class CursorReader:
    """One transcript for each conversation of a database, and for each file of JSON lines.

    ``place`` is the ordinal of a bubble in its conversation, or bytes into the file of JSON lines.
    """

    agent = AGENT

    def roots(self, machine: Machine) -> Sequence[Path]:
        """The editor's ``User`` folder, and the projects of its agents."""
        name, usual = _FOLDERS.get(machine.platform, _LINUX)
        settings = Path(machine.env.get(name) or machine.home / usual)
        data = Path(machine.env.get("CURSOR_DATA_DIR") or machine.home / ".cursor")
        return [settings / "Cursor" / "User", data / "projects"]

    def find(self, root: Path) -> list[Transcript]:
        """The conversations under a ``User`` folder or in one database; else the JSON lines under a folder.

        A database that cannot be read is one transcript without a ``part``: reading it says why.
        """
        databases = _databases(root)
        if databases:
            return [transcript for path in databases for transcript in _listed(path)]
        lines = (path for path in files(root, "*.jsonl") if FOLDER in path.parts)
        return [transcript for path in lines for transcript in _whole(path)]

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        """JSON lines from ``start`` on, a conversation of a database always from its beginning. Raises: OSError."""
        path = transcript.path
        if path.suffix == ".jsonl":
            yield from turns_of(path, start, tally, is_copy=_is_in_editor(path))
            return
        with opened(path, TABLES) as rows:
            ids = [transcript.part] if transcript.part else [_id(key) for _, key, _ in rows(_COMPOSERS, MAX_VALUE)]
            for id in ids:
                yield from _conversation(rows, path, id, tally)


READER = CursorReader()


def _databases(root: Path) -> list[Path]:
    try:
        if root.is_file():
            return files(root, "*.vscdb")
        found = [root / "globalStorage" / _DATABASE, *sorted(root.glob(f"workspaceStorage/*/{_DATABASE}"))]
        return [path for path in found if not path.is_symlink() and files(path, _DATABASE)]
    except OSError:
        return []


def _listed(path: Path) -> list[Transcript]:
    """Conversations with messages, those that were changed last at the end: a changed row gets a new number."""
    found: list[tuple[int, Transcript]] = []
    try:
        with opened(path, TABLES) as rows:
            if path.parent.parent.name == "workspaceStorage" and not _has(rows, "cursorDiskKV"):
                return []
            for number, key, value in rows(_COMPOSERS, MAX_VALUE):
                raw = value.encode() if isinstance(value, str) else value
                stamp = f"{len(raw)}:{zlib.crc32(raw):08x}" if isinstance(raw, bytes) else str(raw)
                if isinstance(raw, int) or (isinstance(raw, bytes) and b'"bubbleId"' in raw):
                    found.append((number, Transcript(AGENT, path, stamp, part=_id(key))))
    except OSError:
        return _whole(path)
    return [transcript for _, transcript in sorted(found, key=lambda each: each[0])]


def _whole(path: Path) -> list[Transcript]:
    """A file as one transcript; none if it is gone by now."""
    try:
        return [Transcript(AGENT, path, stamp_of(path), size=path.stat().st_size)]
    except OSError:
        return []


def _id(key: object) -> str:
    return str(key).removeprefix(_COMPOSER)


def _has(rows: Rows, table: str) -> bool:
    return any(count for (count,) in list(rows(_HAS_TABLE, table)))


def _value(rows: Rows, key: str) -> object:
    """A stored value, or its length where that is too long. Read to the end: nothing stays locked meanwhile."""
    return next((value for (value,) in list(rows(_VALUE, MAX_VALUE, key))), None)


def _conversation(rows: Rows, path: Path, id: str, tally: Tally) -> Iterator[Event]:
    value = _value(rows, f"{_COMPOSER}{id}")
    composer = parsed(value)
    if not composer:
        tally.seen += 1
        tally.skip("longer than the limit" if isinstance(value, int) else "not a JSON object", f"composer {id[:8]}")
        return
    yield _about(rows, path, id, composer)
    headers = _headers(composer)
    running = _unfinished(composer, headers)
    is_inline, older = not composer.get(_ORDER), parsed(composer.get("conversationMap"))
    for place, header in enumerate(headers):
        tally.seen += 1
        bubble = words(header.get("bubbleId"))
        stored = header if is_inline else _value(rows, f"bubbleId:{id}:{bubble}") or older.get(bubble)
        known = {**header, **{name: each for name, each in parsed(stored).items() if each is not None}}
        turns = [] if bubble in running else _turns(_Place(id, bubble, place), known, composer)
        if turns:
            tally.kept += 1
        else:
            reason = "unfinished last line" if bubble in running else _why_none(stored, known)
            tally.skip(reason, f"message {place + 1}")
        yield from turns
    if headers and composer.get("status") in ("aborted", "cancelled"):
        last = len(headers) - 1
        yield Turn(id, f"{words(headers[last].get('bubbleId'))}:stopped", "agent", last, interrupted=True)


def _headers(composer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The order of the bubbles. Versions before 0.44 keep the bubbles themselves there, as ``conversation``."""
    for name in (_ORDER, "conversation"):
        found = composer.get(name)
        if isinstance(found, list) and found:
            return [parsed(each) for each in found]
    return []


def _unfinished(composer: Mapping[str, Any], headers: Sequence[Mapping[str, Any]]) -> set[str]:
    """Bubbles that are being written: they wait, as an unfinished line does."""
    named = composer.get("generatingBubbleIds")
    ids = {words(each) for each in named} if isinstance(named, list) else set()
    if composer.get("status") == "generating" and not ids and headers and headers[-1].get("type") == _AGENT:
        ids = {words(headers[-1].get("bubbleId"))}
    return ids


def _why_none(stored: object, bubble: Mapping[str, Any]) -> str:
    if isinstance(stored, int):
        return "longer than the limit"
    if stored is not None and not parsed(stored):
        return "not a JSON object"
    if bubble.get("capabilityType") == _COMPACTION:
        return "host record"
    return "no text" if bubble.get("type") in (_USER, _AGENT) else "unknown record"


class _Place(NamedTuple):
    session: str
    bubble: str
    place: int

    @property
    def uid(self) -> str:
        return self.bubble or f"{self.session}:{self.place}"


def _turns(at: _Place, bubble: Mapping[str, Any], composer: Mapping[str, Any]) -> list[Turn]:
    said, time = words(bubble.get("text")), _time(at, bubble, composer)
    if bubble.get("type") == _USER:
        return [Turn(at.session, at.uid, "user", at.place, said, time)] if said else []
    if bubble.get("type") != _AGENT or bubble.get("capabilityType") == _COMPACTION:
        return []
    tool = parsed(bubble.get("toolFormerData"))
    number = tool.get("tool")
    name = words(tool.get("name")) or (_TOOLS.get(number, "") if type(number) is int else "")
    made = _call(words(tool.get("toolCallId")) or at.uid, name, tool) if name else None
    if not said and made is None:
        return []
    calls = () if made is None else (made,)
    turns = [Turn(at.session, at.uid, "agent", at.place, said, time, _model(bubble, composer), calls)]
    outcome = None if made is None else _outcome(made.id, tool)
    if outcome is not None:
        turns.append(Turn(at.session, f"{at.uid}:result", "tool", at.place, at=time, outcomes=(outcome,)))
    return turns


def _time(at: _Place, bubble: Mapping[str, Any], composer: Mapping[str, Any]) -> float | None:
    """When a bubble was made; older ones say it in ``timingInfo`` or, the first, by their conversation's beginning."""
    sent = parsed(bubble.get("timingInfo")).get("clientRpcSendTime")
    times = (moment(bubble.get("createdAt")), moment(sent), None if at.place else moment(composer.get("createdAt")))
    return next((time for time in times if time is not None), None)


def _model(bubble: Mapping[str, Any], composer: Mapping[str, Any]) -> str | None:
    names = (parsed(bubble.get("modelInfo")).get("modelName"), parsed(composer.get("modelConfig")).get("modelName"))
    return next((name for name in map(words, names) if name not in ("", "default")), None)


def _call(id: str, name: str, tool: Mapping[str, Any]) -> Call:
    """What the model wrote (``rawArgs``), and what Cursor made of it: about one in ten has only the second."""
    given = {**parsed(tool.get("params")), **parsed(tool.get("rawArgs"))}
    return call(id, name, given or tool.get("rawArgs"))


def _outcome(id: str, tool: Mapping[str, Any]) -> Outcome | None:
    """No single field says whether a call succeeded: a refused command and one that failed are "completed" too."""
    status, result = tool.get("status"), parsed(tool.get("result"))
    if status in _RUNNING or not any(tool.get(name) for name in ("status", "result", "error")):
        return None
    code = result.get("exitCode")
    code = code if type(code) is int else None
    refused = result.get("rejected") is True or parsed(tool.get("additionalData")).get("status") in _REFUSED
    failed = refused or status in _REFUSED or code not in (None, 0)
    return Outcome(id, _shown(tool), False if failed else True if status in _DONE else None, code)


def _shown(tool: Mapping[str, Any]) -> str:
    """What came back, in words: a known field of the result, what went wrong, or the result as it is."""
    error, result = parsed(tool.get("error")), parsed(tool.get("result"))
    told = [_plain(result.get(name)) for name in _SHOWN]
    told += [words(error.get(name)) for name in ("clientVisibleErrorMessage", "modelVisibleErrorMessage")]
    told += [words(tool.get("error")), words(tool.get("result"))]
    return next((each for each in told if each), "")


def _plain(value: object) -> str:
    """A text, or the texts in MCP's list of content blocks, which may be in an object, as JSON or not."""
    blocks = value if isinstance(value, list) else parsed(value).get("content")
    return said_in(blocks) or words(value)


def _about(rows: Rows, path: Path, id: str, composer: Mapping[str, Any]) -> About:
    found = list(rows(_HEAD, id)) if _has(rows, "composerHeaders") else []
    workspace, head = next(((words(workspace), parsed(value)) for workspace, value in found), ("", {}))
    parents = (parsed(each.get("subagentInfo")).get("parentComposerId") for each in (head, composer))
    return About(
        id,
        cwd=_folder_of(path, id, workspace, (composer, head)),
        branch=words(composer.get("createdOnBranch")) or None,
        title=words(composer.get("name")) or words(head.get("name")) or None,
        parent=next((parent for parent in map(words, parents) if parent), None),
    )


def _folder_of(path: Path, id: str, workspace: str, told: Sequence[Mapping[str, Any]]) -> str | None:
    """From what the conversation says (3.12 and later), else from the workspace it is listed in."""
    for each in told:
        uri = parsed(parsed(each.get("workspaceIdentifier")).get("uri"))
        named = words(uri.get("fsPath")) or words(uri.get("path"))
        if named and uri.get("scheme") in (None, "file"):
            return named
    if path.parent.name != "globalStorage":
        return _workspace_folder(path.parent)
    workspaces = path.parent.parent / "workspaceStorage"
    folder = _workspace_folder(workspaces / workspace) if re.fullmatch(r"[\w-]+", workspace) else None
    return folder or _folders(_stamped(workspaces)).get(id)


def _stamped(workspaces: Path) -> tuple[tuple[Path, int], ...]:
    found = (path for path in sorted(workspaces.glob(f"*/{_DATABASE}")) if not path.is_symlink())
    return tuple((path, path.stat().st_mtime_ns) for path in found)


@lru_cache(maxsize=2)
def _folders(databases: tuple[tuple[Path, int], ...]) -> Mapping[str, str]:
    """Conversations to folders, from the lists that workspaces keep. Cached, as every conversation asks for it."""
    found: dict[str, str] = {}
    for path, _ in databases:
        folder = _workspace_folder(path.parent)
        listed: list[Any] = []
        try:
            with opened(path, ("ItemTable",)) as rows:
                kept = [parsed(value) for (value,) in rows(_OF_WORKSPACE, MAX_VALUE)] if folder else []
            listed = [each.get(name) for each in kept for name in ("allComposers", "selectedComposerIds")]
        except OSError:
            continue
        for each in (each for some in listed if isinstance(some, list) for each in some):
            found.setdefault(words(parsed(each).get("composerId")) or words(each), folder or "")
    return found


def _workspace_folder(workspace: Path) -> str | None:
    """The folder of a workspace, from the URI beside its database; None for one on another machine."""
    try:
        uri = urlsplit(words(parsed(beside(workspace / "workspace.json")).get("folder")))
    except ValueError:
        return None
    folder = unquote(uri.path)
    if uri.scheme == "vscode-remote" and unquote(uri.netloc).startswith("wsl+"):
        return folder or None
    if uri.scheme != "file" or uri.netloc:
        return None
    return folder[1:] if re.match(r"/[A-Za-z]:", folder) else folder or None


def _is_in_editor(path: Path) -> bool:
    """Whether the editor's database has the session of JSON lines: it is read there, with times and results."""
    home = next((folder.parent for folder in path.parents if folder.name == ".cursor"), None)
    usual = [] if home is None else [home / folder for _, folder in (_LINUX, *_FOLDERS.values())]
    for settings in usual:
        database = settings / "Cursor" / "User" / "globalStorage" / _DATABASE
        try:
            with opened(database, TABLES) as rows:
                if _headers(parsed(_value(rows, f"{_COMPOSER}{path.stem}"))):
                    return True
        except OSError:
            continue
    return False
