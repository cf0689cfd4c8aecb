"""One session, exchange by exchange, becomes what is stored: its own record, scripts that it ran, episodes in it.

What a session had before a checkpoint is taken from the store; everything from the checkpoint's exchange on is made
anew. Texts that arrive here are clean. Knows nothing about agents' formats, and nothing about when a store is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from grounded_mcp.ingest.checkpoints import Reached, digest, session_id
from grounded_mcp.ingest.transcripts.exchanges import Exchange
from grounded_mcp.ingest.transcripts.mining import Episode, Sighting, commands, episode
from grounded_mcp.ingest.transcripts.passages import headline, passages, title, topic_after
from grounded_mcp.ingest.transcripts.quality import Tallied, judge
from grounded_mcp.ingest.transcripts.turns import FROM_THE_START, About, Event, Start, Turn
from grounded_mcp.stores.base import Known as Held
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record

TITLE_CHARS = 100
MAX_FILES = 40
"""Edited files that a session's card can name; all of them are in its passages."""

Cleaner = Callable[[str], str]


@dataclass(slots=True)
class Known:
    """What a session is known by, as far as it was read. Everything is clean text."""

    cwd: str = ""
    branch: str = ""
    title: str = ""
    parent: str = ""
    model: str = ""
    began: float | None = None
    ended: float | None = None
    files: list[str] = field(default_factory=list)


class Conversation:
    """A session while it is read. ``before``: where an earlier reading got to, with the passages it stored."""

    def __init__(self, session: str, clean: Cleaner, before: Reached | None, stored: Sequence[Passage]) -> None:
        state: Mapping[str, Any] = before.state if before else {}
        self.session = session
        self.known = Known(**state.get("known", {}))
        self.number = before.number if before else 1
        self.turn = before.turn if before else 1
        self.start = before.start if before else FROM_THE_START
        self.seen = list(before.seen) if before else []
        self.last: list[str] = []
        self.tried = [number for number in before.episodes if number < self.number] if before else []
        self.passages = [each for each in stored if each.end_line is not None and each.end_line < self.turn]
        self.sightings: list[Sighting] = []
        self.episodes: list[Episode] = []
        self.folder = self.known.cwd
        """The first working directory, as it is written; ``known.cwd`` is what may be shown of it."""
        self.exchanges = 0
        """Kept by this reading."""
        self._clean = clean
        self._settled = self._tally = Tallied(**state.get("tally", {}))
        self._settled_topic = self._topic = str(state.get("topic", ""))
        self._settled_known = self._copy()
        self._tip = self.start.tip
        self._tips: dict[int, str] = {}
        self.next_number, self.next_turn = self.number, self.turn

    def turns(self, events: Iterable[Event]) -> Iterator[Turn]:
        """The turns among the events; what they say about the session is noted."""
        for event in events:
            if isinstance(event, About):
                self._note(event)
                continue
            if event.role == "user":
                self._tips[self.next_turn] = self._tip
            self._tip = event.uid
            self.next_turn += 1
            yield event

    def add(self, exchange: Exchange, *, is_copy: bool, root: str | None) -> None:
        """Keep an exchange; a copy of one that another session has is only passed over."""
        if exchange.part == 1:
            self._settle(exchange)
            self.next_number = exchange.number + 1
        if is_copy:
            return
        self.last.append(mark_of(exchange))
        known, cwd = self.known, self.known.cwd or None
        made = passages(exchange, cwd=cwd, seq=len(self.passages), topic=self._topic)
        self._topic = topic_after(self._topic, exchange)
        if not made:
            return
        self.exchanges += exchange.part == 1
        self.passages += made
        self._tally = self._tally.plus(exchange)
        self.sightings += commands(exchange, session=self.session, cwd=cwd, root=root)
        tried = episode(exchange, session=self.session, cwd=cwd)
        if tried:
            self.episodes.append(tried)
            self.tried.append(exchange.number)
        known.model = exchange.model or known.model
        known.title = known.title or title(exchange.asked, TITLE_CHARS)
        known.began = exchange.at if known.began is None else known.began
        known.ended = max((each for each in (known.ended, exchange.until) if each is not None), default=None)
        edited = [path for action in exchange.actions if action.kind == "edit" for path in action.files]
        known.files = list(dict.fromkeys([*known.files, *edited]))[:MAX_FILES]

    def reached(self, item: str, scope: str) -> Reached:
        """Where the next reading goes on: at the last exchange, which may not be over."""
        state = {"known": asdict(self._settled_known), "tally": asdict(self._settled), "topic": self._settled_topic}
        return Reached(
            item=item,
            scope=scope,
            start=self.start,
            number=self.number,
            turn=self.turn,
            seen=tuple(self.seen),
            last=tuple(self.last),
            episodes=tuple(dict.fromkeys(self.tried)),
            state=state,
        )

    def item(self, item_id: str, agent: str, scope: str, found_at: float, extra: Mapping[str, str]) -> Item:
        """The session's own item. ``found_at``: its time where the transcript names none."""
        known = self.known
        quality, rule = judge(self._tally)
        attrs = {
            "agent": agent,
            "session": self.session,
            "quality": quality,
            "quality_rule": rule,
            "exchanges": str(self._tally.exchanges),
            "model": known.model,
            "branch": known.branch,
            "cwd": known.cwd,
            "parent": known.parent,
            "files": "\n".join(known.files),
            **extra,
        }
        ended = known.ended if known.ended is not None else found_at
        return Item(
            id=item_id,
            kind="session",
            scope=scope,
            title=Clean(known.title or f"{agent} session"),
            key=f"{agent}:{self.session}" + ("" if item_id == session_id(agent, self.session) else f":{item_id}"),
            created_at=known.began if known.began is not None else ended,
            updated_at=ended,
            content_hash=digest(*(each.body for each in self.passages)),
            attrs={name: value for name, value in attrs.items() if value},
        )

    def _settle(self, exchange: Exchange) -> None:
        """An exchange begins, so the one before it is over."""
        self._settled, self._settled_topic, self._settled_known = self._tally, self._topic, self._copy()
        self.seen += self.last
        self.last = []
        self.number, self.turn = exchange.number, exchange.turns[0]
        self.start = Start(exchange.place, self._tips.get(self.turn, ""))
        self._tips = {turn: tip for turn, tip in self._tips.items() if turn > self.turn}

    def _copy(self) -> Known:
        """What the session is known by now, for a reading that goes on from the exchange that begins here."""
        return replace(self.known, files=list(self.known.files))

    def _note(self, about: About) -> None:
        known, clean = self.known, self._clean
        self.folder = self.folder or (about.cwd or "").strip()
        known.cwd = known.cwd or clean(about.cwd or "").strip()
        known.branch = clean(about.branch or "").strip() or known.branch
        known.title = headline(clean(about.title or ""), TITLE_CHARS) or known.title
        known.parent = about.parent or known.parent


def mark_of(exchange: Exchange) -> str:
    """What tells an exchange from every other, and is the same in a copy of it."""
    return digest(exchange.uid, str(exchange.part), str(exchange.until), str(len(exchange.steps)))


def episode_id(session_item: str, number: int) -> str:
    return f"epi_{digest(session_item, str(number))}"


def episodes(found: Iterable[Episode], session: Item, now: float) -> Iterator[Record]:
    """A record for each episode, beside the session it is from."""
    for each in found:
        at = each.seen.at if each.seen.at is not None else now
        item = Item(
            id=episode_id(session.id, each.seen.exchange),
            kind="episode",
            scope=session.scope,
            title=Clean(headline(each.goal, TITLE_CHARS)),
            key=f"{session.id}#{each.seen.exchange}",
            created_at=at,
            updated_at=at,
            content_hash=digest(each.text),
            attrs={
                "agent": session.attrs["agent"],
                "session": session.id,
                "exchange": str(each.seen.exchange),
                "outcome": each.outcome,
                "files": "\n".join(each.files[:MAX_FILES]),
            },
        )
        yield Record(item, (Passage(0, Clean(each.text)),))


def scripts(
    found: Iterable[Sighting],
    source: Item,
    now: float,
    held: Mapping[str, Held],
    hashes: Callable[[str, float], str],
) -> Iterator[Record]:
    """A record for each command that was seen to work or fail, with the runs of it in ``source`` as evidence.

    ``held``: what the store has of them, by item id. ``hashes``: a file's sha256 if it is as it was then.
    """
    runs: dict[str, list[Sighting]] = {}
    for sighting in found:
        runs.setdefault(sighting.command, []).append(sighting)
    for command, seen in runs.items():
        item_id = f"scr_{digest(source.scope, command)}"
        times = [each.seen.at if each.seen.at is not None else now for each in seen]
        first, newest, before = min(times), max(times), held.get(item_id)
        if before is not None:
            first, newest = min(first, before.created_at), max(newest, before.updated_at)
        again = before is not None and any(
            each.supports and at > before.updated_at for each, at in zip(seen, times, strict=True)
        )
        files = {path: hashes(path, newest) for each in seen for path in each.scripts}
        for path, sha256 in linked(before.attrs if before else {}).items():
            # What a person said the command relies on is in no transcript, and outlasts the reading of one.
            files.setdefault(path, (hashes(path, newest) if again else "") or sha256)
        item = Item(
            id=item_id,
            kind="script",
            scope=source.scope,
            title=Clean(command),
            key=command,
            created_at=first,
            updated_at=newest,
            content_hash=digest(command),
            attrs={"purpose": seen[-1].purpose, **({"scripts": json.dumps(files)} if files else {})},
        )
        evidence = tuple(
            Evidence(source.id, each.seen.exchange, each.supports, each.kind, at, Clean(each.note))
            for each, at in zip(seen, times, strict=True)
        )
        yield Record(item, (Passage(0, Clean(command)),), evidence)


def linked(attrs: Mapping[str, str]) -> Mapping[str, str]:
    """The files that an item relies on, by path, with their sha256 when it was seen to hold; empty: not known."""
    try:
        found = json.loads(attrs.get("scripts", "{}"))
    except ValueError:
        return {}
    return {str(path): str(sha256) for path, sha256 in found.items()} if isinstance(found, dict) else {}
