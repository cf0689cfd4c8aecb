"""Every agent's sessions and their memory in the store, brought into step (I3).

A transcript whose stamp is as it was costs a stat; one that grew is read on from its last exchange. One process at a
time does this for a store. Knows nothing about any agent's format, about vectors, or about how progress is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from grounded_mcp.errors import StoreBusy
from grounded_mcp.ingest.checkpoints import Ledger, source_of
from grounded_mcp.ingest.forgetting import tombstones
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.ingest.session_reading import Desk, Locate, Reading, Result
from grounded_mcp.ingest.transcripts.turns import MAX_EXAMPLES, Machine, Reader, Transcript
from grounded_mcp.stores.base import MAX_BATCH, Store

LEASE = "sessions"
LEASE_S = 60.0
RENEW_S = 20.0


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """[sessions]. ``agents``: whose sessions are read; ``folders``: where, for an agent that keeps them elsewhere."""

    agents: tuple[str, ...]
    folders: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` bytes were looked at; ``path`` is what is being read."""

    done: int
    total: int
    path: str


@dataclass(slots=True)
class AgentReport:
    """What one agent's transcripts came to. Transcripts: found = read + unchanged + elsewhere + failed."""

    found: int = 0
    read: int = 0
    unchanged: int = 0
    elsewhere: int = 0
    """Of other projects than the one that was asked for."""
    failed: int = 0
    problems: list[str] = field(default_factory=list)
    """Why transcripts could not be read: of the first three."""
    sessions: int = 0
    """Sessions stored or brought up to date."""
    exchanges: int = 0
    copies: int = 0
    """Exchanges that another session has already, as after a resume."""
    empty: int = 0
    """Sessions without anything to keep."""
    passages: int = 0
    episodes: int = 0
    commands: int = 0
    records: int = 0
    kept: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Records left out, by reason."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    redactions: dict[str, int] = field(default_factory=dict)
    unchecked: int = 0
    """Texts left out because they could not be checked for secrets."""
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What one import did, by agent. ``busy``: another process is importing, so nothing was done."""

    agents: Mapping[str, AgentReport] = field(default_factory=dict)
    pending: int = 0
    seconds: float = 0.0
    busy: bool = False


def sync_sessions(
    readers: Iterable[Reader],
    machine: Machine,
    store: Store,
    redactor: Redactor,
    options: SessionOptions,
    locate: Locate,
    now: float,
    progress: Callable[[Progress], None] | None = None,
    *,
    scope: str | None = None,
    reread: bool = False,
) -> SessionReport:
    """Read every transcript that is new or has grown. ``scope`` admits only the sessions of one project.

    Each transcript is one transaction with its checkpoint: an interruption loses the one it is at, and the next
    import goes on from there. Raises: StoreError; StoreBusy when another process took over meanwhile.
    """
    started = time.perf_counter()
    with ExitStack() as held:
        if not held.enter_context(store.lease(LEASE, LEASE_S)):
            return SessionReport(busy=True)
        run = _Import(store, redactor, locate, now, scope, reread=reread)
        found = [(reader, each) for reader in readers for each in _found(reader, machine, options)]
        total, done = sum(transcript.size for _, transcript in found), 0
        for reader, transcript in found:

            def step(at: int, done: int = done, transcript: Transcript = transcript) -> None:
                run.renew()
                if progress:
                    progress(Progress(min(done + at, total), total, str(transcript.path)))

            run.take(reader, transcript, step)
            done += transcript.size
            step(0, done)
    return SessionReport(run.reports, run.pending, time.perf_counter() - started)


def _found(reader: Reader, machine: Machine, options: SessionOptions) -> list[Transcript]:
    folder = options.folders.get(reader.agent)
    roots = [Path(folder).expanduser()] if folder else reader.roots(machine)
    return list({source_of(each): each for root in roots for each in reader.find(root)}.values())


class _Import:
    """One run: the ledger of what was read, what waits to be counted, and the lease."""

    def __init__(
        self, store: Store, redactor: Redactor, locate: Locate, now: float, scope: str | None, *, reread: bool
    ) -> None:
        self.reports: dict[str, AgentReport] = {}
        self.pending = 0
        self._ledger = Ledger(store.checkpoints(""))
        self._desk = Desk(store, redactor, locate, self._ledger, tombstones(store), now, scope)
        self._store = store
        self._registered = {project.key for project in store.projects()}
        self._reread = reread
        self._renewed = time.monotonic()

    def renew(self) -> None:
        """Keep the lease alive."""
        if time.monotonic() - self._renewed > RENEW_S:
            with self._store.lease(LEASE, LEASE_S) as ours:
                if not ours:
                    raise StoreBusy("Another process took over this import.", "Nothing is lost; run it again later.")
            self._renewed = time.monotonic()

    def take(self, reader: Reader, transcript: Transcript, step: Callable[[int], None]) -> None:
        """Look at one transcript, read what is new in it, and save that with its checkpoint."""
        report = self.reports.setdefault(reader.agent, AgentReport())
        report.found += 1
        source = source_of(transcript)
        held = self._ledger.checkpoint(source)
        if held and (held.rules != self._desk.rules or self._reread):
            held = None
        if held and self._desk.is_elsewhere(held):
            report.elsewhere += 1
        elif held and held.stamp == transcript.stamp and not held.elsewhere:
            report.unchanged += 1
        else:
            try:
                self._save(source, Reading(self._desk, reader, transcript, source, held).read(step), report)
            except OSError as error:
                report.failed += 1
                why = f"{transcript.path.name}: {error.strerror}" if error.strerror else str(error)
                report.problems += [why] if len(report.problems) < MAX_EXAMPLES else []

    def _save(self, source: str, result: Result, report: AgentReport) -> None:
        """One transaction, unless a session is so long that it takes several: then its checkpoint comes last."""
        for project in result.projects:
            if project.key not in self._registered:  # what a sync of its own said of it is worth more
                self._store.register(project, self._desk.now)
                self._registered.add(project.key)
        for start in range(0, len(result.stale), MAX_BATCH):
            self._store.delete(result.stale[start : start + MAX_BATCH])
        records, retract = result.records, result.retract
        while len(records) > MAX_BATCH:
            self.pending += self._store.save(records[:MAX_BATCH], retract=retract).pending
            records, retract = records[MAX_BATCH:], {}
        states = {source: result.checkpoint.dump()}
        self.pending += self._store.save(records, retract=retract, checkpoints=states).pending
        self._ledger.note(source, result.checkpoint)
        _count(result, report)


def _count(result: Result, report: AgentReport) -> None:
    report.elsewhere += result.elsewhere
    report.read += not result.elsewhere
    report.sessions += result.sessions
    report.empty += result.empty
    report.exchanges += result.exchanges
    report.copies += result.copies
    report.passages += sum(len(each.passages) for each in result.records if each.item.kind == "session")
    report.episodes += sum(each.item.kind == "episode" for each in result.records)
    report.commands += sum(each.item.kind == "script" for each in result.records)
    report.records += result.tally.seen
    report.kept += result.tally.kept
    _add(report.skipped, result.tally.skipped)
    for reason, places in result.tally.examples.items():
        known = report.examples.setdefault(reason, [])
        known += [f"{result.name} {place}" for place in places][: MAX_EXAMPLES - len(known)]
    _add(report.redactions, result.redactions)
    report.unchecked += result.unchecked
    report.bytes += result.bytes


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count
