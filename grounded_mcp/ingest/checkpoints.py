"""How far every transcript was read, as one JSON text for each: enough to skip it, or to go on where it grew.

Knows nothing about what is in a transcript. A source is named by a digest: its path may hold what nobody should read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b

from grounded_mcp.ingest.transcripts.turns import FROM_THE_START, Start, Transcript


def source_of(transcript: Transcript) -> str:
    """``<agent>:<digest of path and part>``."""
    return f"{transcript.agent}:{digest(str(transcript.path), transcript.part)}"


def digest(*parts: str) -> str:
    """16 hex digits that stand for a few texts."""
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Reached:
    """One session of a transcript. ``scope``: where it belongs. ``start``: the last exchange, which may go on.

    ``number`` and ``turn`` are those of that exchange, ``last`` its marks; ``seen`` marks those before it, and
    ``state`` is what they added up to. ``episodes``: the numbers of all exchanges that are episodes.
    """

    item: str
    scope: str
    start: Start = FROM_THE_START
    number: int = 1
    turn: int = 1
    seen: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    episodes: tuple[int, ...] = ()
    state: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A transcript as it was last read: its stamp, under which rules, and its sessions by the agent's own id.

    ``elsewhere``: it was only looked at, because it belongs to another project than the one that was asked for.
    """

    stamp: str
    rules: str
    sessions: Mapping[str, Reached] = field(default_factory=dict)
    elsewhere: bool = False

    def dump(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False)


_TUPLES = ("seen", "last", "episodes")


def parse(text: str) -> Checkpoint | None:
    """What ``dump`` wrote; None for anything else, which means: read it again."""
    try:
        held = json.loads(text)
        sessions = {
            name: Reached(
                **{**each, **{tuples: tuple(each[tuples]) for tuples in _TUPLES}, "start": Start(**each["start"])}
            )
            for name, each in held.pop("sessions").items()
        }
        return Checkpoint(**held, sessions=sessions)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def session_id(agent: str, session: str) -> str:
    """The item of a session, unless another file was first."""
    return f"ses_{digest(agent, session)}"


class Ledger:
    """What all transcripts together came to: their checkpoints, whose each session is, and whose each exchange.

    A resumed conversation copies what was said before into its own file; the file that was read first keeps it.
    """

    def __init__(self, held: Mapping[str, str]) -> None:
        self._checkpoints: dict[str, Checkpoint] = {}
        self._sources: dict[str, str] = {}
        """By item."""
        self._owners: dict[str, str] = {}
        """Items by mark."""
        self._sessions: set[tuple[str, str]] = set()
        for source, text in held.items():
            if found := parse(text):
                self.note(source, found)

    def checkpoint(self, source: str) -> Checkpoint | None:
        return self._checkpoints.get(source)

    def note(self, source: str, checkpoint: Checkpoint) -> None:
        self._checkpoints[source] = checkpoint
        agent = source.partition(":")[0]
        for session, reached in checkpoint.sessions.items():
            if not checkpoint.elsewhere:  # it was looked at, and not read
                self._sessions.add((agent, session))
            if reached.item:
                self._sources[reached.item] = source
            for mark in (*reached.seen, *reached.last):
                self._owners[mark] = reached.item

    def item(self, agent: str, session: str, source: str) -> str:
        """The item of a session: the same wherever it lies, unless two files have different parts of it."""
        usual = session_id(agent, session)
        return usual if self._sources.get(usual, source) == source else session_id(agent, f"{session}\0{source}")

    def is_copy(self, mark: str, item: str) -> bool:
        """Whether another session has this exchange."""
        return self._owners.get(mark, item) != item

    def has_elsewhere(self, agent: str, session: str) -> bool:
        """Whether another agent's own transcript of the same session was read."""
        return any(name == session and other != agent for other, name in self._sessions)
