"""How each client words its hooks: names of events, keys of what it sends, and the shape of what it takes back. Data.

Sources: the clients' own schemas and documentation, and what reached a model when they were run with a model that was
played back (Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, Copilot CLI 1.0, Qwen Code 0.24); for Cursor and VS Code
their documentation. Knows nothing about what is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["start", "prompt", "compact", "end"]
"""``compact``: before it happens. ``end``: of a turn, of a subagent or of the session, when a transcript has grown."""

EVENTS: Mapping[str, Kind] = {
    "sessionstart": "start",
    "start": "start",
    "userpromptsubmit": "prompt",
    "userpromptsubmitted": "prompt",
    "beforesubmitprompt": "prompt",
    "beforeagent": "prompt",
    "prompt": "prompt",
    "precompact": "compact",
    "precompress": "compact",
    "compact": "compact",
    "stop": "end",
    "agentstop": "end",
    "subagentstop": "end",
    "afteragent": "end",
    "sessionend": "end",
    "end": "end",
}
"""Every client's names, without case, hyphens and underscores. Any other event is nothing to us."""

# The keys of one thing in the order they are looked for: clients differ, and VS Code mixes both spellings.
SESSION = ("session_id", "sessionId", "conversation_id", "conversationId")
FOLDER = ("cwd", "workspace_roots", "workspaceRoots")
PROMPT = ("prompt",)
SOURCE = ("source",)
TRIGGER = ("trigger",)
TRANSCRIPTS = ("agent_transcript_path", "transcript_path", "transcriptPath")
EVENT = ("hook_event_name", "hookEventName")

MAX_VALUE = 200_000
"""Characters of one value that are read: a message with a whole file pasted into it."""


class Dialect(NamedTuple):
    """One client. ``context``: by kind, the event's name in the answer; kinds that are not there take no context.

    ``keys``: where the context goes, each a way of keys into the answer; a way that begins with ``hookSpecificOutput``
    has the event's name beside it. ``beside``: what else an answer to a kind must hold. ``silence``: what is written
    where there is nothing to say. ``folders``: variables that name the project's folder. ``agent``: whose transcripts
    they are, for ``ingest.transcripts``; empty where none are read. ``untrue``: triggers with which a compaction is
    announced that mostly does not come.
    """

    agent: str
    context: Mapping[Kind, str]
    keys: tuple[tuple[str, ...], ...] = (("hookSpecificOutput", "additionalContext"),)
    beside: Mapping[Kind, Mapping[str, Any]] = {}
    silence: Mapping[Kind, str] = {}
    folders: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()


_CLAUDE: Mapping[Kind, str] = {"start": "SessionStart", "prompt": "UserPromptSubmit"}

DIALECTS: Mapping[str, Dialect] = {
    "claude-code": Dialect("claude-code", _CLAUDE, folders=("CLAUDE_PROJECT_DIR",)),
    # Unknown keys make Codex drop the whole answer.
    "codex": Dialect("codex", _CLAUDE),
    # Gemini takes stdout for JSON, whatever it holds.
    "gemini": Dialect(
        "gemini",
        {"start": "SessionStart", "prompt": "BeforeAgent"},
        silence={"start": "{}", "prompt": "{}", "compact": "{}", "end": "{}"},
        folders=("GEMINI_PROJECT_DIR",),
        untrue=("auto",),  # before every message, whether the history is long enough to be compressed or not
    ),
    "copilot": Dialect(
        "copilot",
        {"start": "sessionStart", "prompt": "userPromptSubmitted"},
        keys=(("additionalContext",),),
    ),
    "qwen": Dialect("qwen", _CLAUDE),
    "cursor": Dialect(
        "cursor",
        {"start": "sessionStart", "prompt": "beforeSubmitPrompt"},
        keys=(("additional_context",),),
        beside={"prompt": {"continue": True}},
        silence={"prompt": '{"continue":true}'},
        folders=("CURSOR_PROJECT_DIR",),
    ),
    # VS Code takes context when a session starts, and none with a prompt.
    "vscode": Dialect("", {"start": "SessionStart"}),
    # A hook that was connected for Claude Code, run by Cursor: an answer that either of them understands.
    "claude-code in cursor": Dialect(
        "",
        _CLAUDE,
        keys=(("hookSpecificOutput", "additionalContext"), ("additional_context",)),
        beside={"prompt": {"continue": True}},
        folders=("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    ),
}
NAMES = tuple(name for name in DIALECTS if " " not in name)
"""What ``--client`` takes."""

# A hook that was connected for one client can be run by another, which reads that one's settings. It shows by a key
# that the first never sends: (client, key, whose dialect it is then).
GUESTS = (
    ("claude-code", "cursor_version", "claude-code in cursor"),
    ("claude-code", "conversation_id", "claude-code in cursor"),
    ("claude-code", "sessionId", "vscode"),
    ("claude-code", "hookEventName", "vscode"),
    ("copilot", "hookEventName", "vscode"),
)


def dialect_of(client: str, sent: Mapping[str, Any]) -> Dialect | None:
    """How to answer what was sent; None for a client that is not known."""
    host = next((host for guest, key, host in GUESTS if guest == client and key in sent), client)
    return DIALECTS.get(host)


def kind_of(event: str) -> Kind | None:
    return EVENTS.get(event.replace("-", "").replace("_", "").lower())


def text_of(sent: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The first of these that is a text, or a list that begins with one; empty where there is none."""
    for key in keys:
        value = sent.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value:
            return value[:MAX_VALUE]
    return ""


def answer(dialect: Dialect, kind: Kind, context: str) -> dict[str, Any] | None:
    """The answer that carries a context; None where this client takes none here, or there is none."""
    event = dialect.context.get(kind)
    if event is None or not context:
        return None
    made: dict[str, Any] = dict(dialect.beside.get(kind, {}))
    for first, *way in dialect.keys:
        made[first] = {"hookEventName": event, way[0]: context} if way else context
    return made
