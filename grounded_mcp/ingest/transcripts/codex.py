"""Codex's sessions: one rollout file each, as JSON lines, below ``sessions`` and ``archived_sessions`` of its home.

What Codex sends to the model (``response_item``) is the conversation; its events tell the same again and are left out.
A fork or a subagent begins with a copy of its parent's history under new times, so a message is known by its own id
or, where it has none, by all that was said before it. Turns that the person rolled back are left out.
Knows nothing about other agents' formats, and reads no database of Codex.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
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

_FOLDERS = ("sessions", "archived_sessions")
_FILE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_LASTING_ID = 24
"""Characters. Ids made by OpenAI and by Codex are longer; ``call_1`` of a local model comes back in every session."""

_HOST_TEXTS = (
    "<environment_context>", "<user_instructions>", "# agents.md instructions", "<instructions>", "<turn_aborted>",
    "<subagent_notification>", "<skill>", "<user_shell_command>", "<hook_prompt", "<codex_internal_context",
    "<goal_context>", "<extension_context>", "<permissions instructions>", "<skills_instructions>",
    "<collaboration_mode>", "warning: apply_patch was requested via exec_command",
    "warning: the maximum number of unified exec processes",
)  # fmt: skip
"""How texts begin that Codex puts into the person's role, without case: ``core/src/context`` of its source."""
_HOST_ITEMS = (
    "reasoning", "ghost_snapshot", "compaction", "compaction_summary", "compaction_trigger", "context_compaction",
    "additional_tools", "agent_message", "image_generation_call", "tool_search_call", "tool_search_output", "other",
)  # fmt: skip
_HOST_RECORDS = (
    "session_meta", "turn_context", "event_msg", "compacted", "world_state", "token_usage_record",
    "inter_agent_communication",
)  # fmt: skip
_CONTEXT = b'"turn_context"'
_MARKS = (b'"session_meta"', b'"thread_rolled_back"', b'"user"', b'"instructions"')
"""What a line holds that may be a record of that kind; inside of a text the quotes would be escaped. The last is for
first records without an envelope."""
_TYPED = "user.text"
_UNKNOWN_KINDS = (None, "unknown")
_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|Current working directory: ([^\n]+)")

_ENVELOPE = re.compile(
    r"(?:Command: .{0,4000}?\n)?"
    r"(?P<head>(?:(?:Exit code|Chunk ID|Wall time|Process exited with code|Process running with session ID"
    r"|Original token count|Total output lines)\b[^\n]*\n)+)Output:(?:\n|$)",
    re.DOTALL,
)
_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,10})\s*$", re.MULTILINE)
_REFUSED = re.compile(
    r"(?:Wall time: [^\n]*\n)?aborted(?: by user[^\n]*)?$|(?:exec command|patch) rejected by user|unsupported call: "
    r"|failed to parse function arguments|execution error: |exec_command failed|apply_patch verification failed"
    r"|tool call error: "
)
"""Outputs of calls that were never run, or that failed before there was an exit code."""
_STOPPED = (None, "interrupted", "replaced")
"""Reasons of ``turn_aborted`` that are the person's doing."""


@dataclass(frozen=True, slots=True)
class CodexReader:
    """Rollout files, live and archived. ``CODEX_HOME`` stands for ``~/.codex``."""

    agent: str = "codex"

    def roots(self, machine: Machine) -> Sequence[Path]:
        home = machine.env.get("CODEX_HOME", "").strip()
        base = Path(home) if home else machine.home / ".codex"
        return [base / name for name in _FOLDERS]

    def find(self, root: Path) -> Iterator[Transcript]:
        for path in finding.files(root, "*.jsonl"):
            try:
                yield Transcript(self.agent, path, lines.stamp_of(path), size=path.stat().st_size)
            except OSError:  # gone since it was listed
                continue

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        path = transcript.path
        survey = _survey(path, start.offset)
        if any(begin < start.offset <= end for begin, end in survey.dead):
            # Turns that were read before have been rolled back since.
            start, survey = Start(), _survey(path, 0)
        about = _about(path, survey)
        yield about
        yield from _turns(path, start, survey, about.session, tally)


READER = CodexReader()


@dataclass(slots=True)
class _Survey:
    """What has to be known of a whole file before its turns can be told.

    ``seed``: the session that the history began in. ``model``: the one in use where reading starts. ``dead``: what
    was rolled back, as byte ranges. ``asked``: where the questions that still stand begin.
    """

    meta: Payload = field(default_factory=dict)
    seed: str = ""
    cwd: str = ""
    model: str | None = None
    asked: list[int] = field(default_factory=list)
    dead: list[tuple[int, int]] = field(default_factory=list)

    def roll_back(self, count: object, at: int) -> None:
        if isinstance(count, int) and count > 0 and self.asked:
            self.dead.append((self.asked[-count:][0], at))
            del self.asked[-count:]


def _survey(path: Path, offset: int) -> _Survey:
    """Only records that bear on others are read as JSON, so that going on in a long file costs little."""
    found, contexts, at = _Survey(), [], 0
    with lines.open_plain(path) as file:
        while raw := file.readline(lines.MAX_LINE_BYTES + 1):
            if _CONTEXT in raw:
                contexts += [at] if at < offset else []
            elif any(mark in raw for mark in _MARKS):
                _take(found, at, *_record(path, at))
            at += len(raw)
    models = (_model(_record(path, at)[1]) for at in reversed(contexts))
    found.model = next(filter(None, models), None)
    return found


def _take(found: _Survey, at: int, kind: str, payload: Payload) -> None:
    if kind == "session_meta":
        found.meta = found.meta or payload
        # A fork's own record is followed by that of the session whose history is copied after it.
        found.seed = found.seed if found.asked else _text(payload.get("id"))
    elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
        found.roll_back(payload.get("num_turns"), at)
    elif kind == "response_item" and payload.get("role") == "user":
        found.cwd = found.cwd or _cwd(payload)
        found.asked += [at] if _typed(payload) else []


def _record(path: Path, at: int) -> tuple[str, Payload]:
    line = next(lines.records(path, Tally(), at), None)
    return _unwrapped(line.record) if line and line.offset == at else ("", {})


def _about(path: Path, survey: _Survey) -> About:
    meta = survey.meta
    named = _FILE_ID.search(path.stem)
    # ``session_id`` of a subagent is that of the session at the top.
    session = _text(meta.get("id")) or _text(meta.get("session_id")) or (named[0] if named else path.stem)
    cwd = _text(meta.get("cwd")) or survey.cwd
    return About(session, cwd or None, _text(_mapping(meta.get("git")).get("branch")) or None, parent=_parent(meta))


def _parent(meta: Payload) -> str | None:
    """The session that started this one; "unknown" where the file only says that there was one."""
    source = _mapping(meta.get("source")).get("subagent")
    spawn = _mapping(_mapping(source).get("thread_spawn"))
    named = _text(spawn.get("parent_thread_id")) or _text(meta.get("parent_thread_id"))
    return named or (_text(meta.get("forked_from_id")) or "unknown" if source else None)


def _turns(path: Path, start: Start, survey: _Survey, session: str, tally: Tally) -> Iterator[Turn]:
    uid, model = start.tip or survey.seed or session, survey.model
    for at, record in lines.records(path, tally, start.offset):
        kind, payload = _unwrapped(record)
        if kind == "turn_context":
            model = _model(payload) or model
        said = "rewound" if any(begin <= at < end for begin, end in survey.dead) else _said(kind, payload)
        if isinstance(said, str):
            tally.skip(said, f"byte {at}")
            continue
        tally.kept += 1
        uid = _uid(uid, payload)
        yield Turn(
            session,
            uid,
            said.role,
            at,
            said.text,
            moment(record.get("timestamp")),
            model if said.role == "agent" else None,
            said.calls,
            said.outcomes,
            said.interrupted,
        )


def _unwrapped(record: Payload) -> tuple[str, Payload]:
    """A record's kind and payload. Codex before autumn 2025 wrote the bare payload."""
    kind, payload = _text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        return kind, payload
    if kind in _ITEMS:
        return "response_item", record
    bare_meta = not kind and "id" in record and "timestamp" in record
    return ("session_meta", record) if bare_meta else (kind, {})


class _Said(NamedTuple):
    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    interrupted: bool = False


def _said(kind: str, payload: Payload) -> _Said | str:
    """What a record adds to the conversation, or why it adds nothing."""
    if kind == "response_item":
        return _ITEMS.get(_text(payload.get("type")), _unknown)(payload)
    if kind == "event_msg" and payload.get("type") == "turn_aborted" and payload.get("reason") in _STOPPED:
        return _Said("agent", interrupted=True)
    return "host record" if kind in _HOST_RECORDS else "unknown record"


def _message(payload: Payload) -> _Said | str:
    role = payload.get("role")
    if role == "user":
        texts = _typed(payload)
        only_host = not texts and any(_texts(payload.get("content")))
        return _Said("user", "\n".join(texts)) if texts else "host record" if only_host else "no text"
    if role == "assistant":
        text = "\n".join(_texts(payload.get("content")))
        return _Said("agent", text) if text.strip() else "no text"
    return "host record" if role in ("developer", "system") else "unknown record"


def _function(payload: Payload) -> _Said:
    namespace, name = _text(payload.get("namespace")), _text(payload.get("name"))
    tool = f"{namespace.rstrip('_')}__{name}" if namespace else name
    arguments = payload.get("arguments", payload.get("input"))
    return _Said("agent", calls=(calls.call(_text(payload.get("call_id")), tool, arguments),))


def _shell(payload: Payload) -> _Said:
    id = _text(payload.get("call_id")) or _text(payload.get("id"))
    return _Said("agent", calls=(calls.call(id, "local_shell", payload.get("action")),))


def _search(payload: Payload) -> _Said:
    """A search that the model's provider ran: nothing comes back for it but this."""
    id = _text(payload.get("id"))
    done = Outcome(id, "", True if payload.get("status") == "completed" else None)
    return _Said("agent", calls=(calls.call(id, "web_search", payload.get("action")),), outcomes=(done,))


def _output(payload: Payload) -> _Said:
    return _Said("tool", outcomes=(_outcome(_text(payload.get("call_id")), payload.get("output")),))


def _host(payload: Payload) -> str:
    return "host record"


def _unknown(payload: Payload) -> str:
    return "unknown record"


_ITEMS: Mapping[str, Callable[[Payload], _Said | str]] = {
    "message": _message,
    "function_call": _function,
    "custom_tool_call": _function,
    "local_shell_call": _shell,
    "web_search_call": _search,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "mcp_tool_call_output": _output,
    **dict.fromkeys(_HOST_ITEMS, _host),
}


def _typed(payload: Payload) -> list[str]:
    """The texts of a message in the person's role that the person typed."""
    content = payload.get("content")
    about = _mapping(payload.get("internal_chat_message_metadata_passthrough"))
    kinds = about.get("content_item_kinds")
    items = content if isinstance(content, list) else [content]
    typed = []
    for item, kind in zip_longest(items, kinds if isinstance(kinds, list) else []):
        text = "\n".join(_texts([item]))
        if text.strip() and (kind == _TYPED or (kind in _UNKNOWN_KINDS and not _from_host(text))):
            typed.append(text)
    return typed


def _from_host(text: str) -> bool:
    return text.lstrip()[:80].casefold().startswith(_HOST_TEXTS)


def _outcome(call: str, output: object) -> Outcome:
    """What came back, without what Codex puts around it, and how it went: by exit code where there is one."""
    given = _mapping(output)
    text = "\n".join(_texts(given.get("content") if given else output))
    if given:
        success = given.get("success")
        return Outcome(call, text, success if isinstance(success, bool) else None)
    envelope = _ENVELOPE.match(text)
    code = _EXIT_CODE.search(envelope["head"]) if envelope else None
    if envelope:
        exit_code, text = int(code[1]) if code else None, text[envelope.end() :]
    else:
        exit_code, text = _from_json(text)
    if exit_code is not None:
        return Outcome(call, text, exit_code == 0, exit_code)
    return Outcome(call, text, False if not envelope and _REFUSED.match(text) else None)


def _from_json(text: str) -> tuple[int | None, str]:
    """``{"output": ..., "metadata": {"exit_code": ...}}``, as early versions wrote, and later ones for patches."""
    if not text.startswith('{"output":'):
        return None, text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None, text
    code = _mapping(found.get("metadata")).get("exit_code")
    whole = isinstance(found.get("output"), str) and isinstance(code, int) and not isinstance(code, bool)
    return (code, found["output"]) if whole else (None, text)


def _uid(before: str, payload: Payload) -> str:
    """The same for copies of a message in other files: from its own id, or from its text and what came ``before``."""
    names = [_text(payload.get(name)) for name in ("type", "id", "call_id", "role", "name", "arguments", "input")]
    lasting = next((id for id in names[1:3] if len(id) >= _LASTING_ID), "")
    parts = [before, *names, *_texts(payload.get("content")), *_texts(payload.get("output"))]
    known = "\0".join([names[0], lasting] if lasting else parts)
    return hashlib.blake2b(known.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _cwd(payload: Payload) -> str:
    found = _CWD.search("\n".join(_texts(payload.get("content")))[:10_000])
    return (found[1] or found[2]).strip() if found else ""


def _model(payload: Payload) -> str | None:
    return _text(payload.get("model")) or None


def _texts(content: object) -> list[str]:
    items = content if isinstance(content, list) else [content]
    texts = [item.get("text") if isinstance(item, dict) else item for item in items]
    return [text for text in texts if isinstance(text, str)]


def _mapping(value: object) -> Payload:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
