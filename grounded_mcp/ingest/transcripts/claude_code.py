"""Claude Code's sessions: ``<config>/projects/<folder>/<session>.jsonl``, and a file for each of its subagents.

Records as versions 1.0 to 2.1.332 write them. Which of them are the person's words and which are the client's is
decided here, by type, flags and the tag a text starts with. A message that the person sent while the agent worked is
no user record: it stands beside a tool result, or in an attachment. Which records were taken back: ``claude_tree``.
Knows nothing about other agents, stores or projects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from grounded_mcp.ingest.transcripts import claude_tree
from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.claude_tree import Tree, key
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.lines import open_plain, records, stamp_of
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

_OWN_AGENTS = ("agent-acompact-", "agent-aprompt_suggestion-")
"""Subagents that the client starts for itself; what they say repeats the session or was never asked for."""
_ASIDE = "/aside"
"""Ends the uid of words that stand in the same record as a tool's result."""
_HEAD_BYTES = 64 * 1024
_SESSION = re.compile(rb'"sessionId": ?"([^"\\]{1,100})"')
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

_HOST_RECORDS = (
    "system", "progress", "attachment", "summary", "custom-title", "ai-title", "agent-name", "agent-color",
    "agent-setting", "tag", "pr-link", "file-history-snapshot", "file-history-delta", "queue-operation",
    "last-prompt", "mode", "permission-mode", "tools-used", "atis-latch", "api-request", "api-request-blob",
    "api-request-shape", "cost-state", "content-replacement", "attribution-snapshot", "worktree-state",
    "bridge-session", "speculation-accept",
)  # fmt: skip
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_HOST_ORIGINS = ("task-notification", "auto-continuation", "peer", "system")
_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
"""Where a title stands, and its rank: a name the person gave stands above one that was made up."""

_HOST_TEXT = re.compile(
    r"\s*(?:<(?:command-name|local-command-\w+|task-notification|user-prompt-submit-hook)\b|Caveat: The messages below"
    r"|<system-reminder>(?:(?!</system-reminder>).)*</system-reminder>\s*\Z)",
    re.DOTALL,
)
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user[^\]]*\]\s*\Z")
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")
_NOT_RUN = re.compile(
    r"(?:Error: |<tool_use_error>)*(?:The user doesn't want to|User rejected|Sibling tool call errored"
    r"|\[Request interrupted by user|Permission to use )"
)

Record = Mapping[str, Any]


class ClaudeCodeReader:
    """Both kinds of files. Reading makes two passes: one over the links, one over what is said."""

    agent = "claude-code"

    def roots(self, machine: Machine) -> Sequence[Path]:
        """``CLAUDE_CONFIG_DIR`` moves the folder, on every platform."""
        config = machine.env.get("CLAUDE_CONFIG_DIR", "").strip()
        return [(Path(config) if config else machine.home / ".claude") / "projects"]

    def find(self, root: Path) -> Iterable[Transcript]:
        """Sessions and their subagents, oldest first. The root may be the configuration folder or anything in it."""
        base = _projects(root)
        for path in files(base, "*.jsonl"):
            if _is_session(path.relative_to(base.resolve())):
                try:
                    yield Transcript(self.agent, path, stamp_of(path), size=path.stat().st_size)
                except OSError:  # gone since it was listed
                    continue

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        session, parent = _names(transcript.path)
        offset, tree = _where_to_go_on(transcript.path, start)
        reading = _Reading(session, parent, tree)
        for place, record in records(transcript.path, tally, offset):
            yield from _events(reading, record, place, tally)


READER = ClaudeCodeReader()


@dataclass(slots=True)
class _Reading:
    """What was met so far: for each session its last folder and branch, the title, records that may come again."""

    session: str
    parent: str | None
    tree: Tree
    told: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    title: tuple[int, str] = (0, "")
    met: set[int] = field(default_factory=set)


class _Origin(NamedTuple):
    session: str
    uid: str
    place: int
    at: float | None


def _projects(root: Path) -> Path:
    try:
        return root / "projects" if (root / "projects").is_dir() else root
    except OSError:
        return root


def _is_session(path: Path) -> bool:
    if path.name.startswith("agent-"):
        return not path.name.startswith(_OWN_AGENTS)
    return not any(each.name == "subagents" or _UUID.fullmatch(each.name) for each in path.parents)


def _names(path: Path) -> tuple[str, str | None]:
    """The session of a file, and the one that started it. A file without its own name is asked what it holds."""
    name = path.stem
    if not name.startswith("agent-"):
        return (name if _UUID.fullmatch(name) else _recorded(path) or name), None
    above = next((each.parent.name for each in path.parents if each.name == "subagents"), "") or _recorded(path)
    return (f"{above}/{name}", above) if above else (name, None)


def _recorded(path: Path) -> str:
    with open_plain(path) as file:
        found = _SESSION.search(file.read(_HEAD_BYTES))
    return found[1].decode("utf-8", "replace") if found else ""


def _where_to_go_on(path: Path, start: Start) -> tuple[int, Tree]:
    if start.offset > 0:
        tree = claude_tree.grow(path, start.offset, _asks)
        if claude_tree.leads_back(path, start.offset, start.tip.removesuffix(_ASIDE), tree.outside):
            return start.offset, tree
    return 0, claude_tree.grow(path, 0, _asks)


def _asks(record: Record) -> bool:
    """Whether a record is a prompt such as one rewinds to: typed, or a command that the agent answers.

    Commands that the client itself runs are none: ``/exit`` in a second terminal takes nothing back.
    """
    if record.get("type") != "user" or record.get("isSidechain") is True or _by_host(record):
        return False
    texts = _texts(_blocks(_content(record)))
    return record.get("promptSource") != "queued" and any(_slash(text) or _words(text) for text in texts)


def _events(reading: _Reading, record: Record, place: int, tally: Tally) -> Iterator[Event]:
    if _met_before(reading, record):
        tally.skip("copy of an earlier record", f"byte {place}")
        return
    turns = _turns(reading, record, place)
    if isinstance(turns, str):
        tally.skip(turns, f"byte {place}")
        yield from _title(reading, record)
    elif reading.tree.rewound and key(record.get("uuid")) in reading.tree.rewound:
        tally.skip("rewound", f"byte {place}")
    else:
        tally.kept += 1
        yield from _about(reading, record, turns[0].session)
        yield from turns


def _met_before(reading: _Reading, record: Record) -> bool:
    """A record that is written twice, or a message sent in mid-work beside the record that was to be made from it."""
    attached = record.get("attachment")
    source = key(attached.get("source_uuid")) if isinstance(attached, dict) else 0
    if not (source or reading.met or reading.tree.repeated):
        return False
    own = key(record.get("uuid"))
    again = own in reading.met or source in reading.met
    reading.met |= {each for each in (source, own) if each and (each == source or own in reading.tree.repeated)}
    return again


def _title(reading: _Reading, record: Record) -> Iterator[About]:
    name, rank = _TITLES.get(str(record.get("type")), ("", 0))
    title = _name(record, name)
    if not title or not title.strip() or (rank, title) == reading.title or rank < reading.title[0]:
        return
    # Old versions wrote the summaries of other sessions into a file as well.
    if name != "summary" or key(record.get("leafUuid")) in reading.tree.known:
        reading.title = (rank, title)
        yield About(reading.session, title=title.strip())


def _about(reading: _Reading, record: Record, session: str) -> Iterator[About]:
    now = (_name(record, "cwd"), _name(record, "gitBranch"))
    parent = reading.parent if session == reading.session else reading.session
    if session not in reading.told:
        yield About(session, *now, parent=parent)
    elif now != reading.told[session]:
        yield About(session, *now)
    reading.told[session] = now


def _turns(reading: _Reading, record: Record, place: int) -> list[Turn] | str:
    """The turns of a record, or the reason why there are none."""
    kind = str(record.get("type"))
    make = _MAKERS.get(kind)
    if make is None or _by_host(record):
        return "host record" if make or kind in _HOST_RECORDS else "unknown record"
    session = reading.session
    if record.get("isSidechain") is True and reading.parent is None:  # before 2.0, subagents wrote into the same file
        session = f"{session}/agent-{_name(record, 'agentId') or 'sidechain'}"
    uid = _name(record, "uuid") or f"{session}:{place}"
    return make(record, _Origin(session, uid, place, moment(record.get("timestamp"))))


def _by_host(record: Record) -> bool:
    if (
        record.get("isMeta") is True
        or record.get("isCompactSummary") is True
        or record.get("isApiErrorMessage") is True
    ):
        return True
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind in _HOST_ORIGINS or record.get("promptSource") == "system"


def _assistant(record: Record, origin: _Origin) -> list[Turn] | str:
    message = record.get("message")
    model = _name(message, "model") if isinstance(message, dict) else None
    if model == "<synthetic>":
        return "host record"
    blocks = _blocks(_content(record))
    calls = tuple(
        [
            call(_name(block, "id") or "", _name(block, "name") or "", block.get("input"))
            for block in blocks
            if block.get("type") in _CALLS
        ]
    )
    text = "\n\n".join(_texts(blocks))
    return [_turn(origin, "agent", text, calls=calls, model=model)] if text or calls else "no text"


def _user(record: Record, origin: _Origin) -> list[Turn] | str:
    blocks = _blocks(_content(record))
    results = [block for block in blocks if block.get("type") == "tool_result"]
    texts = _texts(blocks)
    if results:
        rich = record.get("toolUseResult") if len(results) == 1 else None
        turns = [_turn(origin, "tool", outcomes=tuple([_outcome(block, rich) for block in results]))]
        beside = _said(texts, origin._replace(uid=origin.uid + _ASIDE)) if texts else ""
        return turns if isinstance(beside, str) else turns + beside
    shell = texts[0].lstrip() if len(texts) == 1 else ""
    if shell.startswith("<bash-input>"):
        typed = call(origin.uid, "Bash", {"command": _inside(shell, "bash-input")})
        return [_turn(origin, "user", calls=(typed,))]
    if shell.startswith("<bash-stdout>"):
        printed = filter(None, (_inside(shell, "bash-stdout"), _inside(shell, "bash-stderr")))
        return [_turn(origin, "tool", outcomes=(Outcome(_name(record, "parentUuid") or "", "\n".join(printed)),))]
    return _said(texts, origin)


def _sent_in_mid_work(record: Record, origin: _Origin) -> list[Turn] | str:
    attached = record.get("attachment")
    if not isinstance(attached, dict) or attached.get("type") != "queued_command" or _by_host(attached):
        return "host record"
    if attached.get("commandMode", "prompt") != "prompt":
        return "host record"
    return _said(_texts(_blocks(attached.get("prompt"))), origin)


_MAKERS: Mapping[str, Callable[[Record, _Origin], list[Turn] | str]] = {
    "user": _user,
    "assistant": _assistant,
    "attachment": _sent_in_mid_work,
}


def _said(texts: Sequence[str], origin: _Origin) -> list[Turn] | str:
    words = "\n\n".join(filter(None, map(_words, texts)))
    interrupted = any(_INTERRUPTED.match(text) for text in texts)
    if words or interrupted:
        return [_turn(origin, "user", words, interrupted=interrupted)]
    return "host record" if texts else "no text"


def _words(text: str) -> str:
    """What the person says in a text: nothing in one that the client wrote, the words behind a slash command."""
    if _slash(text):
        name, words = _inside(text, "command-name"), _inside(text, "command-args")
        return f"{name} {words}" if words else ""
    return "" if _HOST_TEXT.match(text) or _INTERRUPTED.match(text) else text


def _slash(text: str) -> bool:
    """Whether a text is a command that the agent answers; one that the client runs starts with its name instead."""
    return text.lstrip().startswith("<command-message>")


def _inside(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].rpartition(f"</{tag}>")[0].strip()


def _outcome(block: Record, rich: object) -> Outcome:
    """``rich``: the client's own account of what came back, which says more than the result the agent saw."""
    id, text = _name(block, "tool_use_id") or "", "\n".join(_texts(_blocks(block.get("content"))))
    details = rich if isinstance(rich, dict) else {}
    if block.get("is_error") is True:
        code = _EXIT_CODE.match(text)
        return Outcome(id, text, None if _NOT_RUN.match(text) else False, int(code[1]) if code else None)
    if details.get("interrupted") is True:
        return Outcome(id, text, False)
    known = block.get("is_error") is False or isinstance(rich, dict | list)
    if not known or details.get("backgroundTaskId"):
        return Outcome(id, text)
    # A code that the client explains is not 0: grep found nothing, diff found differences.
    clean = "stdout" in details and not details.get("returnCodeInterpretation")
    return Outcome(id, text, True, 0 if clean else None)


def _turn(
    origin: _Origin,
    role: Role,
    text: str = "",
    *,
    model: str | None = None,
    calls: tuple[Call, ...] = (),
    outcomes: tuple[Outcome, ...] = (),
    interrupted: bool = False,
) -> Turn:
    session, uid, place, at = origin
    return Turn(session, uid, role, place, text, at, model, calls, outcomes, interrupted)


def _content(record: Record) -> object:
    message = record.get("message")
    return message.get("content") if isinstance(message, dict) else None


def _blocks(content: object) -> list[Record]:
    """A content as blocks, however it is written: a string, blocks, strings among blocks."""
    listed = content if isinstance(content, list) else [content]
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in listed]
    return [block for block in blocks if isinstance(block, dict)]


def _texts(blocks: Sequence[Record]) -> list[str]:
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _name(record: Record, field: str) -> str | None:
    value = record.get(field)
    return value if isinstance(value, str) and value else None
