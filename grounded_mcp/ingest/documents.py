"""The files of a project and its documents in the store, brought into step (I1).

A file whose size and time are as stored costs a stat; another is read, and the store keeps the passages that are
equal. Knows nothing about what is in a file, about vectors, or about how progress is shown.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from grounded_mcp import git
from grounded_mcp.errors import InputError, NotFound, RedactionError, StoreBusy
from grounded_mcp.ingest.files import Source, document_id, git_state, is_as_stored, key_of, read_document
from grounded_mcp.ingest.forgetting import tombstones
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.ingest.renaming import former
from grounded_mcp.ingest.selection import UNWANTED, DocumentOptions, Reason, select
from grounded_mcp.ingest.walk import Found, Skipped, own_ignore_lines, walk
from grounded_mcp.stores.base import MAX_BATCH, Known, Store
from grounded_mcp.values import Project, Record

__all__ = ["DocumentOptions", "Progress", "SyncReport", "sync_documents"]

BATCH_RECORDS = 50
BATCH_PASSAGES = 1000
"""A batch is one write transaction; longer ones starve other processes (engine-facts 4a)."""
LEASE_S = 60.0
RENEW_S = 20.0
EXAMPLES = 3

_Outcome = Literal["added", "updated", "unchanged", "missing"]
_KEPT: frozenset[Reason] = frozenset({"unreadable", "redaction failed"})
"""Reasons that may pass: what the store holds of such a file stays as it is."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The ``done``-th of ``total`` files was looked at."""

    done: int
    total: int
    path: str


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did, counted in files. ``busy``: another sync of the project is running, so nothing was done."""

    seen: int = 0
    """Files and folders that were judged: added + updated + unchanged + skipped."""
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    missing: int = 0
    """Documents whose file is gone; they stay, and say so."""
    dropped: int = 0
    """Documents deleted from the store, because a rule now leaves their file out."""
    skipped: Mapping[Reason, int] = field(default_factory=dict)
    """By reason; a folder that was left out counts once."""
    examples: Mapping[Reason, tuple[str, ...]] = field(default_factory=dict)
    """Up to three paths for each reason."""
    passages: int = 0
    """Of the added and updated documents."""
    pending: int = 0
    """Passages that are new and wait for a vector."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Secrets taken out, by kind."""
    seconds: float = 0.0
    busy: bool = False


def sync_documents(
    root: Path,
    project: Project,
    store: Store,
    redactor: Redactor,
    options: DocumentOptions,
    now: float,
    progress: Callable[[Progress], None] | None = None,
    *,
    env: git.Environment | None = None,
    reread: bool = False,
) -> SyncReport:
    """Index the files under ``root``, and mark or delete the documents that have none any more.

    Saved in batches, each one transaction: an interruption leaves what was saved, and the next sync goes on from
    there. ``reread`` opens every file, as after a change of the redaction patterns. ``env`` goes to git. A sync of
    a linked worktree adds and updates but takes nothing away: another checkout may still have the file.

    Raises: InputError when ``root`` is no folder; StoreError; StoreBusy when another process took over meanwhile.
    """
    started = time.perf_counter()
    if not root.is_dir():
        raise InputError("path", f"{str(root)!r} is not a folder.", "Give a folder that exists.")
    if root.resolve() == Path(root.resolve().anchor):
        raise InputError("path", f"{str(root)!r} is a whole disk, not a project.", "Name a project's folder.")
    with ExitStack() as held:
        lease = f"sync:{project.scope}"
        if not held.enter_context(store.lease(lease, LEASE_S)):
            return SyncReport(busy=True)
        store.register(project, now)
        selection = select(options, own_ignore_lines(root))
        source = Source(root, project, selection, redactor, git.listing(root, env), now)
        sync = _Sync(source, store, lease, reread=reread)
        entries = list(walk(root, selection, source.listing))
        for done, entry in enumerate(entries, 1):
            key = sync.take(entry)
            if progress:
                progress(Progress(done, len(entries), key))
        sync.flush()
        if sync.complete and not project.worktree:
            sync.retire()
    return replace(sync.report(), seen=len(entries), seconds=time.perf_counter() - started)


class _Sync:
    """One run: what is stored, what was seen, what waits to be saved, and the counts."""

    def __init__(self, source: Source, store: Store, lease: str, *, reread: bool) -> None:
        self._source = source
        self._store = store
        self._lease = lease
        self._renewed = time.monotonic()
        self._tombstones = tombstones(store)
        self._scopes = (source.project.scope, *former(store, source.project.scope))
        self._stored = store.known("doc", source.project.scope)
        self._reread = reread
        self._batch: list[tuple[_Outcome, Record]] = []
        self._here: set[str] = set()
        self._left_out: dict[str, Reason] = {}
        self._counts: Counter[str] = Counter()
        self._redactions: Counter[str] = Counter()
        self._examples: defaultdict[Reason, list[str]] = defaultdict(list)
        self.complete = True
        """Whether every file of the project was seen: only then is one that was not seen gone."""

    def take(self, entry: Found | Skipped) -> str:
        """Look at one file; returns its path as it may be shown."""
        self._renew()
        try:
            key = key_of(entry.path, self._source.redactor)
        except RedactionError:
            self.complete = False
            return self._leave_out("[path not shown]", "redaction failed")
        if isinstance(entry, Skipped):
            return self._leave_out(key, entry.reason)
        self._here.add(key)
        known = self._stored.get(key)
        if known and not self._reread and is_as_stored(entry, known, self._source):
            self._refresh(entry, known)
            return key
        made = read_document(entry, key, self._source, known.created_at if known else self._source.now)
        if isinstance(made, Skipped):
            self._here.discard(key)
            return self._leave_out(key, made.reason)
        item = replace(made.record.item, id=known.id) if known else made.record.item  # it may be of another key's time
        if any(self._tombstones.has(document_id(scope, key), item.content_hash) for scope in self._scopes):
            self._here.discard(key)
            return self._leave_out(key, "forgotten")
        self._redactions.update(made.redactions)
        same = known and (known.content_hash, known.state) == (item.content_hash, item.state)
        self._put("added" if known is None else "unchanged" if same else "updated", replace(made.record, item=item))
        return key

    def flush(self) -> None:
        """Save what waits, in one transaction."""
        if not self._batch:
            return
        report = self._store.save([record for _, record in self._batch])
        self._counts["pending"] += report.pending
        for outcome, record in self._batch:
            self._counts[outcome] += 1
            self._counts["passages"] += len(record.passages) if outcome in ("added", "updated") else 0
        self._batch.clear()

    def _renew(self) -> None:
        """Keep the lease alive, however long nothing has to be saved."""
        if time.monotonic() - self._renewed > RENEW_S:
            with self._store.lease(self._lease, LEASE_S) as ours:
                if not ours:
                    raise StoreBusy("Another process took over this sync.", "Nothing is lost; run it again later.")
            self._renewed = time.monotonic()

    def retire(self) -> None:
        """What was stored and was not seen: a file that is gone is ``missing``, one now left out is deleted."""
        unwanted = []
        for key, known in self._stored.items():
            reason = None if key in self._here else self._why_left_out(key)
            if key in self._here or known.state == "superseded" or reason in _KEPT:
                continue
            if reason in UNWANTED:
                unwanted.append(known.id)
            elif known.state != "missing":
                self._put_missing(known)
        self.flush()
        for start in range(0, len(unwanted), MAX_BATCH):
            self._counts["dropped"] += self._store.delete(unwanted[start : start + MAX_BATCH])

    def report(self) -> SyncReport:
        skipped = {reason: self._counts[f"skipped {reason}"] for reason in self._examples}
        examples = {reason: tuple(paths) for reason, paths in self._examples.items()}
        return SyncReport(
            added=self._counts["added"],
            updated=self._counts["updated"],
            unchanged=self._counts["unchanged"],
            missing=self._counts["missing"],
            dropped=self._counts["dropped"],
            skipped=skipped,
            examples=examples,
            passages=self._counts["passages"],
            pending=self._counts["pending"],
            redactions=dict(self._redactions),
        )

    def _put(self, outcome: _Outcome, record: Record) -> None:
        self._batch.append((outcome, record))
        waiting = sum(len(each.passages) for _, each in self._batch)
        if len(self._batch) >= BATCH_RECORDS or waiting >= BATCH_PASSAGES:
            self.flush()

    def _refresh(self, found: Found, known: Known) -> None:
        """An untouched file: only what git says about it may be new."""
        listing, blobs = self._source.listing, known.attrs.get("blob")
        state = git_state(found.path, blobs, listing) if listing and blobs else None
        if state in (None, known.attrs.get("git")):
            self._counts["unchanged"] += 1
            return
        self._put_again("unchanged", known, git=state)

    def _put_missing(self, known: Known) -> None:
        was_tracked = known.attrs.get("git") in ("tracked", "modified")
        self._put_again("missing", known, git="deleted" if was_tracked else None)

    def _put_again(self, outcome: _Outcome, known: Known, *, git: str | None) -> None:
        """A document as it is stored, with another state or another word from git."""
        try:
            item, passages = self._store.item(known.id)
        except NotFound:  # forgotten meanwhile
            return
        attrs = {**item.attrs, "git": git} if git else item.attrs
        state = "missing" if outcome == "missing" else item.state
        self._put(outcome, Record(replace(item, state=state, attrs=attrs), passages))

    def _leave_out(self, key: str, reason: Reason) -> str:
        self._left_out[key] = reason
        self._counts[f"skipped {reason}"] += 1
        if len(self._examples[reason]) < EXAMPLES:
            self._examples[reason].append(key)
        if reason == "over the file limit" or key == "./":
            self.complete = False
        return key

    def _why_left_out(self, key: str) -> Reason | None:
        """The reason for a file, or for a folder it is in."""
        folders = (f"{folder}/" for folder in PurePosixPath(key).parents)
        return next((self._left_out[path] for path in (key, *folders) if path in self._left_out), None)
