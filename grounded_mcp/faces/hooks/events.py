"""What each kind of event brings: a brief, whole memories, or a note for later. Knows nothing about clients' words.

=========  =========================================================================================================
kind       what happens
=========  =========================================================================================================
start      the brief, unless the session is taken up again with one in view
prompt     memories that the message names and that are not in view; after a compaction the brief again
compact    what was in view no longer is
end        the transcript is put into the queue of the next sync or server
=========  =========================================================================================================
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from grounded_mcp.faces.hooks import dialects, files
from grounded_mcp.faces.hooks.dialects import Dialect, Kind
from grounded_mcp.faces.hooks.place import Place, Settings, brief_options, place, settings, weights
from grounded_mcp.home import Home

if TYPE_CHECKING:
    from grounded_mcp.brief.choosing import Brief, BriefOptions
    from grounded_mcp.foreground import LightShelf

TWICE_S = 10.0
"""An event that comes again within so long is the same one, from a client that runs another one's hooks, too."""
AWAY_S = 60.0
"""A server that gave no answer is asked again after so long."""
MAX_SEEN = 500


class Call(NamedTuple):
    """One event: of which kind, from whom, and what came with it."""

    kind: Kind
    dialect: Dialect
    sent: Mapping[str, Any]
    home: Home

    @property
    def session(self) -> str:
        return dialects.text_of(self.sent, dialects.SESSION)

    @property
    def folder(self) -> str:
        """The project's folder: as the client's own variable says, else as it was sent, else where we run."""
        named = (self.home.env.get(name) for name in self.dialect.folders)
        return next(filter(None, named), "") or dialects.text_of(self.sent, dialects.FOLDER) or os.getcwd()  # noqa: PTH109


class View(NamedTuple):
    """What a session's model has before it. ``briefed``: when, in seconds since 1970; 0 for never."""

    seen: tuple[str, ...] = ()
    briefed: float = 0.0
    compacted: bool = False


def context(call: Call, now: float, extend: Callable[[float], None] = lambda _: None) -> str:
    """What the model is to read; empty where there is nothing to say. Raises: GroundedError."""
    in_force = settings(call.home, call.folder)
    extend(in_force.deadline_s)
    if not in_force.on_server and not os.path.isfile(in_force.store):  # noqa: PTH113 - pathlib is not imported here
        return ""
    if not _first(call, now) or _is_away(call, in_force, now):
        return ""
    told = _EVENTS[call.kind](call, in_force, now)
    files.remove(call.home.folder, "asked")
    return told


def _first(call: Call, now: float) -> bool:
    """Whether nobody answered this event a moment ago. What only notes something may be done twice."""
    if not call.session or call.kind not in ("start", "prompt"):
        return True
    again = "compact" if dialects.text_of(call.sent, dialects.SOURCE) == "compact" else ""
    said = dialects.text_of(call.sent, dialects.PROMPT) if call.kind == "prompt" else again
    told = f"{crc32(said.encode('utf-8', 'surrogatepass')):08x}"
    return files.claim(call.home.folder, f"{call.kind}-{told}-{files.safe_name(call.session)}", now, TWICE_S)


def _is_away(call: Call, in_force: Settings, now: float) -> bool:
    """Whether a hook that asked the server a moment ago got no answer, so that nobody waits for it at every message."""
    if not in_force.on_server or call.kind not in ("start", "prompt"):
        return False
    asked = files.read(call.home.folder, "asked")
    if isinstance(asked, int | float) and in_force.deadline_s < now - asked < AWAY_S:
        return True
    files.write(call.home.folder, "asked", value=now)
    return False


# --- what happens -----------------------------------------------------------------------------------------


def _start(call: Call, in_force: Settings, now: float) -> str:
    view = _view(call)
    resumed = dialects.text_of(call.sent, dialects.SOURCE) == "resume"
    if "start" not in call.dialect.context or (resumed and view.briefed and not view.compacted):
        return ""
    made, text = make_brief(call.home, call.folder, in_force, now)
    files.prune(call.home.folder, now)
    _look_at(call, View(made.ids, now))
    return text


def _prompt(call: Call, in_force: Settings, now: float) -> str:
    message, view = dialects.text_of(call.sent, dialects.PROMPT), _view(call)
    if "prompt" not in call.dialect.context:
        return ""
    again = view.compacted
    parts, seen = [], list(view.seen)
    if again:
        made, text = make_brief(call.home, call.folder, in_force, now, part=2)
        parts += [text] if text else []
        seen += made.ids
    told, ids = make_mentions(call.home, call.folder, in_force, now, message, seen, part=1 + again)
    parts += [told] if told else []
    if parts or again:
        _look_at(call, View((*seen, *ids)[-MAX_SEEN:], now if again else view.briefed))
    return "\n\n".join(parts)


def _compact(call: Call, _: Settings, now: float) -> str:
    if dialects.text_of(call.sent, dialects.TRIGGER) in call.dialect.untrue:
        return ""
    _look_at(call, View((), _view(call).briefed or now, compacted=True))
    return ""


def _end(call: Call, _: Settings, now: float) -> str:
    path = dialects.text_of(call.sent, dialects.TRANSCRIPTS)
    if call.dialect.agent and os.path.isabs(path):  # noqa: PTH117
        entry = {"agent": call.dialect.agent, "path": path, "at": now}
        files.write(call.home.folder, "queue", files.safe_name(f"{call.dialect.agent} {path}"), value=entry)
    return ""


_EVENTS: Mapping[Kind, Callable[[Call, Settings, float], str]] = {
    "start": _start,
    "prompt": _prompt,
    "compact": _compact,
    "end": _end,
}


# --- what the command line asks for, too ------------------------------------------------------------------


def make_brief(home: Home, folder: str, in_force: Settings, now: float, part: int = 1) -> tuple[Brief, str]:
    """The brief of the project that a folder belongs to, in one ``part``-th of the room; no text where it is empty.

    Raises: GroundedError.
    """
    from grounded_mcp.brief.choosing import brief
    from grounded_mcp.brief.text import brief_text

    store = _open(in_force)
    try:
        here = place(home, folder, store, now)
        made = brief(store, here, _room(in_force, part), now, _looking(here), weights(in_force.values))
    finally:
        store.close()
    return made, "" if made.empty else brief_text(made)


def make_mentions(
    home: Home, folder: str, in_force: Settings, now: float, message: str, seen: Sequence[str] = (), part: int = 1
) -> tuple[str, tuple[str, ...]]:
    """The memories that a message names, as text, and their ids. Raises: GroundedError."""
    from grounded_mcp.brief.naming import mentioned, mentioned_text
    from grounded_mcp.concrete import named

    room = _room(in_force, part)
    if not named(message, room.names):
        return "", ()  # without having opened anything
    store = _open(in_force)
    try:
        found = mentioned(store, lambda: place(home, folder, store, now), message, room, seen)
    finally:
        store.close()
    return mentioned_text(found, room), tuple(note.id for note in found.notes)


def _room(in_force: Settings, part: int) -> BriefOptions:
    made = brief_options(in_force.values)
    return made._replace(max_chars=made.max_chars // part, max_tokens=made.max_tokens // part)


def _open(in_force: Settings) -> LightShelf:
    """The store, to be read. Raises: ConfigError for an engine that is not there, StoreError."""
    if not in_force.on_server:
        from grounded_mcp.stores.sqlite_light import LightStore

        return LightStore(in_force.store)
    try:
        from grounded_mcp.stores.postgres_light import PostgresLight
    except ImportError as error:
        from grounded_mcp.errors import ConfigError

        told = f"The store is a Postgres URL, and {error.name} is not installed."
        raise ConfigError(told, "Install it: pip install 'grounded-memory-mcp[postgres]'") from error
    values = in_force.values
    return PostgresLight(in_force.store, None if values is None else values["store.postgres.schema"])


def _looking(here: Place) -> Callable[[Mapping[str, str]], str]:
    """How a script's files are now; what is needed to hash them is imported when there is one."""

    def look(scripts: Mapping[str, str]) -> str:
        if not scripts:
            return "verified"
        from grounded_mcp.knowledge.freshness import Freshness

        return Freshness(here.folder).state(scripts)

    return look


# --- what a session has in view ---------------------------------------------------------------------------


def _view(call: Call) -> View:
    held = files.read(call.home.folder, "sessions", files.safe_name(call.session)) if call.session else None
    match held:
        case {"seen": [*seen], "briefed": float() | int() as briefed, "compacted": bool() as compacted}:
            return View(tuple(map(str, seen)), briefed, compacted)
    return View()


def _look_at(call: Call, view: View) -> None:
    if call.session:
        files.write(call.home.folder, "sessions", files.safe_name(call.session), value=view._asdict())
