"""One transcript, from where an earlier reading got to, into records and a checkpoint. Writes nothing.

Streams: what is in memory is one exchange and the passages of one session. Knows nothing about agents' formats.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path

from grounded_mcp.errors import InputError, NotFound, RedactionError
from grounded_mcp.ingest.checkpoints import Checkpoint, Ledger, Reached
from grounded_mcp.ingest.conversation import Conversation, episode_id, episodes, mark_of, scripts
from grounded_mcp.ingest.forgetting import Tombstones
from grounded_mcp.ingest.redact import Redactor, clean_project
from grounded_mcp.ingest.transcripts.exchanges import exchanges
from grounded_mcp.ingest.transcripts.strip import strip
from grounded_mcp.ingest.transcripts.turns import FROM_THE_START, Event, Reader, Tally, Transcript, Turn
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Item, Passage, Project, Record

READING = "1"
"""Raised when transcripts are read differently: then all of them are read again."""
COPYING = frozenset({"specstory"})
"""Tools that write other agents' sessions once more, under the same ids. The agent's own transcript is worth more."""
UNCHECKED = "[text left out: it could not be checked for secrets]"
MAX_SCRIPT_BYTES = 1_048_576

_Before = tuple[str, Reached] | None
"""The one session of a transcript by the agent's id, and how far it was read."""

Locate = Callable[[str], Project]
"""The project that a recorded working directory belongs to."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What every reading of one import shares. ``scope`` admits one project's sessions only."""

    store: Store
    redactor: Redactor
    locate: Locate
    ledger: Ledger
    tombstones: Tombstones
    now: float
    scope: str | None

    @property
    def rules(self) -> str:
        """What a text was read and cleaned by."""
        return f"{READING}.{self.redactor.rules}"

    def is_elsewhere(self, held: Checkpoint) -> bool:
        """Whether everything that was found there belongs to other projects than the one that is asked for."""
        scopes = {each.scope for each in held.sessions.values()}
        return self.scope is not None and bool(scopes) and self.scope not in scopes


@dataclass(slots=True)
class Result:
    """What one reading came to. ``stale``: episodes that are no longer there; ``retract``: as for ``Store.save``."""

    name: str
    checkpoint: Checkpoint
    tally: Tally
    records: list[Record] = field(default_factory=list)
    retract: dict[str, int] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)
    redactions: Counter[str] = field(default_factory=Counter)
    elsewhere: bool = False
    sessions: int = 0
    empty: int = 0
    exchanges: int = 0
    copies: int = 0
    unchecked: int = 0
    bytes: int = 0


class Reading:
    """One transcript being read. ``held``: its checkpoint, if what was read before still holds."""

    def __init__(
        self, desk: Desk, reader: Reader, transcript: Transcript, source: str, held: Checkpoint | None
    ) -> None:
        self._desk = desk
        self._reader = reader
        self._transcript = transcript
        self._source = source
        self._held = held
        self._before, self._passages = self._from_the_store(_only(held))
        self._conversations: dict[str, Conversation] = {}
        self._projects: dict[str, Project | None] = {}
        self._scopes: dict[str, str] = {}
        self._result = Result(transcript.path.name, Checkpoint(transcript.stamp, desk.rules), Tally())

    def read(self, step: Callable[[int], None]) -> Result:
        """Read to the end, or to where it turns out to belong to another project. ``step``: bytes so far.

        Raises: OSError for a file that cannot be read; StoreError.
        """
        result = self._result
        start = self._before[1].start if self._before else FROM_THE_START
        events = self._fresh_if_restarted(self._reader.read(self._transcript, start, result.tally), start.offset)
        for session, each in groupby(events, key=lambda event: event.session):
            if self._is_copied_from_another_agent(session):
                result.tally.skip("copy of another agent's session")
                continue
            if not self._converse(self._conversation(session), each, step):
                result.elsewhere = True
                break
        sessions = dict(self._held.sessions) if self._held and self._before else {}
        for session, conversation in self._conversations.items():
            sessions[session] = self._finish(session, conversation)
        result.checkpoint = Checkpoint(self._transcript.stamp, self._desk.rules, sessions, result.elsewhere)
        result.bytes = max(0, result.tally.end - start.offset) or self._transcript.size
        return result

    def _fresh_if_restarted(self, events: Iterator[Event], offset: int) -> Iterator[Event]:
        """The events; when they begin before the place that was asked for, nothing of before counts."""
        first: list[Event] = []
        for event in events:
            first.append(event)
            if isinstance(event, Turn):
                if event.place < offset:
                    self._before = None
                break
        return chain(first, events)

    def _conversation(self, session: str) -> Conversation:
        if session not in self._conversations:
            before = self._before[1] if self._before and self._before[0] == session else None
            passages = self._passages if before else ()
            self._conversations[session] = Conversation(session, self._clean, before, passages)
        return self._conversations[session]

    def _from_the_store(self, before: _Before) -> tuple[_Before, tuple[Passage, ...]]:
        """Where an earlier reading got to, with what it stored; nothing, if that is gone: then all is read again."""
        if before is None:
            return None, ()
        try:
            return before, self._desk.store.item(before[1].item)[1]
        except NotFound:
            return None, ()

    def _converse(self, conversation: Conversation, events: Iterable[Event], step: Callable[[int], None]) -> bool:
        """Take the exchanges in; False when they belong to another project than the one that is asked for."""
        item = self._desk.ledger.item(self._reader.agent, conversation.session, self._source)
        turns = conversation.turns(events)
        for exchange in exchanges(turns, self._clean, number=conversation.next_number, turn=conversation.next_turn):
            project = self._project(conversation)
            if self._desk.scope not in (None, self._scope(conversation)):
                return False
            is_copy = self._desk.ledger.is_copy(mark_of(exchange), item)
            self._result.copies += is_copy
            conversation.add(exchange, is_copy=is_copy, root=project.root if project else None)
            step(exchange.place)
        return True

    def _project(self, conversation: Conversation) -> Project | None:
        """Where it was held, by the first working directory that it names."""
        session = conversation.session
        if session not in self._projects:
            self._projects[session] = self._located(session, conversation.folder)
        return self._projects[session]

    def _scope(self, conversation: Conversation) -> str:
        """Where it belongs in the store, which holds no secret, in a project's key either."""
        session, project = conversation.session, self._project(conversation)
        if session not in self._scopes:
            clean = clean_project(project, self._desk.redactor) if project else None
            self._scopes[session] = clean.scope if clean else f"agent:{self._reader.agent}"
        return self._scopes[session]

    def _located(self, session: str, cwd: str) -> Project | None:
        """A session stays where it was first found, when its folder is gone: a worktree that was removed has no
        repository to ask."""
        try:
            project = self._desk.locate(cwd) if cwd else None
        except InputError:
            return None
        before = self._desk.ledger.checkpoint(self._source)
        held = before.sessions.get(session) if before else None
        if project is None or held is None or held.scope == project.scope or Path(cwd).exists():
            return project
        known = (each for each in self._desk.store.projects() if each.scope == held.scope)
        return next(known, project)

    def _finish(self, session: str, conversation: Conversation) -> Reached:
        """The records of one conversation, and where the next reading of it goes on."""
        agent, result, desk = self._reader.agent, self._result, self._desk
        item_id = desk.ledger.item(agent, session, self._source)
        project, scope = self._project(conversation), self._scope(conversation)
        result.exchanges += conversation.exchanges
        if result.elsewhere or not conversation.passages or desk.tombstones.has(item_id):
            result.empty += not result.elsewhere and not conversation.passages
            if desk.tombstones.has(item_id):
                result.tally.skip("forgotten")
            return Reached("", scope)
        before = self._before[1] if self._before and self._before[0] == session else None
        item = self._where_it_was(conversation.item(item_id, agent, scope, self._modified, self._extra(project)))
        result.sessions += 1
        if project:
            result.projects.append(replace(clean_project(project, desk.redactor), branch=None, worktree=None))
        result.retract[item_id] = before.number if before else 0
        held = self._held.sessions.get(session) if self._held else None
        gone = set(held.episodes if held else ()) - set(conversation.tried)
        result.stale += [episode_id(item_id, number) for number in sorted(gone)]
        known = {each.id: each for each in desk.store.known("script", scope).values()}
        made = [
            *episodes(conversation.episodes, item, self._modified),
            *scripts(conversation.sightings, item, self._modified, known, _hasher(project)),
        ]
        result.records += [each for each in made if not desk.tombstones.has(each.item.id)]
        result.records.append(Record(item, tuple(conversation.passages)))
        return conversation.reached(item_id, scope)

    def _where_it_was(self, item: Item) -> Item:
        """A session in the archive stays there, unless it went on."""
        try:
            held = self._desk.store.item(item.id)[0]
        except NotFound:
            return item
        stays = held.state == "archived" and item.updated_at <= held.updated_at
        return replace(item, state=held.state) if stays else item

    def _extra(self, project: Project | None) -> dict[str, str]:
        """What the session's place adds to its own attributes."""
        path = self._clean(str(self._transcript.path))
        worktree = project.worktree if project else None
        return {"source": path, "worktree": self._clean(worktree or "")}

    def _is_copied_from_another_agent(self, session: str) -> bool:
        agent = self._reader.agent
        return agent in COPYING and self._desk.ledger.has_elsewhere(agent, session)

    @cached_property
    def _modified(self) -> float:
        """When the file was written last: the time of a session whose transcript names none."""
        try:
            return self._transcript.path.stat().st_mtime
        except OSError:
            return self._desk.now

    def _clean(self, text: str) -> str:
        """Without what a host put in, then without secrets. Fails closed: an unchecked text is left out."""
        try:
            cleaned = self._desk.redactor.clean(strip(text))
        except RedactionError:
            self._result.unchecked += 1
            return UNCHECKED
        self._result.redactions.update(cleaned.redactions)
        return cleaned.text


def _only(held: Checkpoint | None) -> _Before:
    """The one session of a transcript that may be read on; several are read again as a whole."""
    sessions = list(held.sessions.items()) if held else []
    return sessions[0] if len(sessions) == 1 and sessions[0][1].item else None


def _hasher(project: Project | None) -> Callable[[str, float], str]:
    """A script's sha256, if the file has not changed since the time it was seen; otherwise nothing is known."""

    def sha256(path: str, seen: float) -> str:
        if project is None:
            return ""
        root = Path(project.root)
        try:
            file = (root / path).resolve()
            found = file.stat()
            fits = file.is_relative_to(root.resolve()) and file.is_file() and found.st_size <= MAX_SCRIPT_BYTES
            return hashlib.sha256(file.read_bytes()).hexdigest() if fits and found.st_mtime <= seen else ""
        except (OSError, ValueError):
            return ""

    return sha256
