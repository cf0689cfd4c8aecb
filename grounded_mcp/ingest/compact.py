"""Moving old conversations into the archive, and writing a digest of every week that has some there (I6).

Only when called. Week by week and conversation by conversation: what is in memory is what one digest quotes. A digest
that would say what it says already is left alone, so that compacting twice changes nothing.
Knows nothing about what a digest says.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from grounded_mcp.errors import InputError, NotFound, StoreBusy
from grounded_mcp.ingest.checkpoints import digest
from grounded_mcp.ingest.digests import RULES, Run, Told, week_of, weekly
from grounded_mcp.ingest.excerpts import excerpts
from grounded_mcp.ingest.sessions import LEASE, LEASE_S
from grounded_mcp.stores.base import MAX_BATCH, Known, Store

DAY = 86_400.0
MAX_DAYS = 100_000.0


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """[sessions]. ``archive_after_days``: since a conversation's last exchange. ``digest_lines``: most of a section."""

    archive_after_days: float
    digest_lines: int


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What one run did. ``weeks``: those whose digest was written, oldest first. ``busy``: nothing was done.

    ``pending``: passages of digests that wait for a vector.
    """

    archived: int = 0
    written: int = 0
    unchanged: int = 0
    deleted: int = 0
    """Digests of weeks that have no archived conversation any more."""
    weeks: tuple[str, ...] = ()
    pending: int = 0
    seconds: float = 0.0
    busy: bool = False


def compact(store: Store, options: CompactOptions, now: float, *, scopes: Iterable[str] | None = None) -> CompactReport:
    """Archive the conversations of ``scopes`` (None: of all) that ended too long ago, and bring digests into step.

    Run again after an interruption, it goes on where it was. Raises: InputError for an age that is none; StoreError;
    StoreBusy when another process took over meanwhile.
    """
    if not 0 <= options.archive_after_days < MAX_DAYS:
        shown = options.archive_after_days
        raise InputError("older-than", f"{shown} is not a number of days.", "Give days since the last exchange.")
    started = time.perf_counter()
    with store.lease(LEASE, LEASE_S) as ours:
        if not ours:
            return CompactReport(busy=True)
        run = _Run(store, options)
        for scope in sorted(store.scopes() if scopes is None else set(scopes)):
            run.take(scope, now)
    return CompactReport(
        run.archived,
        run.written,
        run.unchanged,
        run.deleted,
        tuple(sorted(run.weeks)),
        run.pending,
        time.perf_counter() - started,
    )


@dataclass(slots=True)
class _Run:
    """One run, and what it came to so far."""

    store: Store
    options: CompactOptions
    archived: int = 0
    written: int = 0
    unchanged: int = 0
    deleted: int = 0
    pending: int = 0
    weeks: set[str] = field(default_factory=set)

    def take(self, scope: str, now: float) -> None:
        """One project's conversations."""
        sessions = self.store.known("session", scope).values()
        cut = now - self.options.archive_after_days * DAY
        old = [each.id for each in sessions if each.state == "active" and each.updated_at < cut]
        for start in range(0, len(old), MAX_BATCH):
            self.archived += self.store.mark(old[start : start + MAX_BATCH], "archived", now)
        moved = set(old)
        weeks: dict[str, list[Known]] = defaultdict(list)
        for each in sessions:
            if each.state == "archived" or each.id in moved:
                weeks[week_of(each.updated_at)].append(each)
        self._bring_into_step(scope, weeks)

    def _bring_into_step(self, scope: str, weeks: Mapping[str, Sequence[Known]]) -> None:
        held = self.store.known("digest", scope)
        gone = [each.id for week, each in held.items() if week not in weeks]
        self.deleted += self.store.delete(gone) if gone else 0
        attempts = _attempts(self.store.known("episode", scope).values())
        hashes = {week: self._basis(found, attempts) for week, found in weeks.items()}
        stale = [week for week in sorted(weeks) if week not in held or held[week].content_hash != hashes[week]]
        self.unchanged += len(weeks) - len(stale)
        runs = _runs(self.store, scope) if stale else {}
        for week in stale:
            self._write(scope, week, weeks[week], attempts, runs, hashes[week])
            self._renew()

    def _basis(self, found: Sequence[Known], attempts: Mapping[str, Known]) -> str:
        """What a week's digest is made from, as one text: the rules, and each conversation with its last attempt."""
        parts = [RULES, str(self.options.digest_lines)]
        for each in sorted(found, key=lambda known: known.id):
            last = attempts.get(each.id)
            parts += [each.id, each.content_hash, str(each.updated_at), json.dumps(dict(each.attrs), sort_keys=True)]
            parts += [last.id, last.content_hash] if last else []
        return digest(*parts)

    def _write(
        self,
        scope: str,
        week: str,
        found: Sequence[Known],
        attempts: Mapping[str, Known],
        runs: Mapping[str, Sequence[Run]],
        content_hash: str,
    ) -> None:
        told = list(self._told(found, attempts))
        if not told:
            return
        seen = [run for each in told if each.quality != "low" for run in runs.get(each.item.id, ())]
        record = weekly(week, scope, told, seen, lines=self.options.digest_lines, content_hash=content_hash)
        report = self.store.save([record])
        self.written += report.added + report.updated
        self.unchanged += report.unchanged
        self.pending += report.pending
        self.weeks.add(week)

    def _told(self, found: Sequence[Known], attempts: Mapping[str, Known]) -> Iterator[Told]:
        """Each conversation as far as a digest needs it; what was deleted meanwhile is left out."""
        for each in found:
            try:
                item, passages = self.store.item(each.id)
                last = attempts.get(each.id)
                quoted = excerpts(passages) if each.attrs.get("quality") != "low" else None
                attempt = self.store.item(last.id)[0] if last else None
            except NotFound:
                continue
            yield Told(item, quoted, attempt) if quoted else Told(item)

    def _renew(self) -> None:
        with self.store.lease(LEASE, LEASE_S) as ours:
            if not ours:
                raise StoreBusy("Another process took over.", "Nothing is lost; run it again later.")


def _attempts(episodes: Iterable[Known]) -> dict[str, Known]:
    """The last attempt of each conversation, by the conversation's id."""
    last: dict[str, Known] = {}
    for each in sorted(episodes, key=lambda known: (int(known.attrs.get("exchange", "0")), known.id)):
        last[each.attrs.get("session", "")] = each
    return last


def _runs(store: Store, scope: str) -> dict[str, list[Run]]:
    """Every run of every command of a project, by conversation."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for script in store.known("script", scope).values():
        for seen in store.evidence(script.id):
            runs[seen.session].append(Run(script.id, script.key, seen))
    return runs
