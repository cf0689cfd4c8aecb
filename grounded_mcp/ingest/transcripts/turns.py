"""What every reader yields, and what a reader is. Knows no agent's format, and nothing about stores or projects.

A reader turns bytes on disk into turns in the order they happened, one at a time. Whatever a host or a tool put into
a conversation stays in the text here, unless the format says that a record is not the person's or the agent's;
``strip`` and ``exchanges`` take the rest out. Texts are not yet redacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from grounded_mcp.errors import InputError
from grounded_mcp.when import parse_time

Role = Literal["user", "agent", "tool"]
CallKind = Literal["command", "edit", "read", "memory", "other"]


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a tool by the agent. ``tool`` is the agent's own name for it."""

    id: str
    tool: str
    kind: CallKind = "other"
    command: str = ""
    """The shell command, for kind ``command``."""
    files: tuple[str, ...] = ()
    """Paths that were read or edited, as the agent wrote them."""
    subject: str = ""
    """What it was about, in a line: a pattern, a URL, a description."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back for a call. ``ok`` is None where the transcript does not say."""

    call: str
    text: str
    ok: bool | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. ``uid`` is unique within an agent's sessions; a copy in another file has the same.

    ``place``: bytes from the start of the file to the record, or its ordinal where a format has no lines.
    ``at``: seconds since the epoch, UTC; None where the format does not say.
    """

    session: str
    uid: str
    role: Role
    place: int
    text: str = ""
    at: float | None = None
    model: str | None = None
    calls: tuple[Call, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    interrupted: bool = False
    """The person stopped the agent here."""


@dataclass(frozen=True, slots=True)
class About:
    """What a transcript says about a session as a whole. None: says nothing. The first ``cwd`` counts, the last of the
    others. ``parent``: the session that started this one as a subagent."""

    session: str
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    parent: str | None = None


Event = Turn | About


@dataclass(frozen=True, slots=True)
class Transcript:
    """One thing to read: a file, or one session (``part``) of a database.

    ``stamp`` changes when there may be something new. ``size`` in bytes, for the report.
    """

    agent: str
    path: Path
    stamp: str
    part: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading goes on: ``offset`` bytes in, after the turn ``tip``. A reader that cannot go on from there, as
    after a rewind, starts at 0: the first turn's ``place`` tells."""

    offset: int = 0
    tip: str = ""


FROM_THE_START = Start()


@dataclass(slots=True)
class Tally:
    """What reading met. ``kept`` and ``skipped`` count records; ``examples`` say where, as "line 12" or "byte 4096".

    ``end``: bytes read up to and including the last complete record.
    """

    seen: int = 0
    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    end: int = 0

    def skip(self, reason: str, where: str = "") -> None:
        """Count a record that is not kept. ``reason`` is a few words from a fixed set, never text of the record."""
        self.skipped[reason] += 1
        if where:
            places = self.examples.setdefault(reason, [])
            if len(places) < MAX_EXAMPLES:
                places.append(where)


MAX_EXAMPLES = 3


def moment(value: object) -> float | None:
    """Seconds since the epoch for a recorded time in any usual notation (UTC where it names no offset), or None."""
    try:
        return parse_time(value, field="timestamp", now=0.0)
    except InputError:
        return None


Env = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Machine:
    """Where agents keep their sessions on this machine. ``platform`` as in ``sys.platform``."""

    home: Path
    platform: str
    env: Env = field(default_factory=dict)
    project_root: Path | None = None
    """For agents that keep their history inside the project."""


class Reader(Protocol):
    """One agent's format. Never writes, never follows a link out of the folder it looks in."""

    agent: str

    def roots(self, machine: Machine) -> Sequence[Path]:
        """The default folders or files; they need not exist."""
        ...

    def find(self, root: Path) -> Iterable[Transcript]:
        """Every transcript under a root, in a stable order. A root that is gone or unreadable has none."""
        ...

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        """Its turns in order. What cannot be read is counted in ``tally``. Raises: OSError for the file itself."""
        ...
