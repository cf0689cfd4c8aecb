"""The SQLite store: rows, FTS5 and vectors of one memory in one file. The door; each verb's work is next door.

``sqlite_schema`` opens files, ``sqlite_connection`` runs transactions, ``sqlite_write``, ``sqlite_read`` and
``sqlite_vectors`` do the work of the verbs, ``sqlite_sql`` holds the statements. Any thread may call any verb.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import apsw

from grounded_mcp.accounts import StoreInfo
from grounded_mcp.entities import EntityId
from grounded_mcp.errors import StoreDamaged, StoreError
from grounded_mcp.events import Event
from grounded_mcp.foreground import Foreground, Most, Note, Weights
from grounded_mcp.stores import sqlite_check as checking
from grounded_mcp.stores import sqlite_entities as mentioned
from grounded_mcp.stores import sqlite_errors as errors
from grounded_mcp.stores import sqlite_foreground as leading
from grounded_mcp.stores import sqlite_read as reading
from grounded_mcp.stores import sqlite_sources as sources
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores import sqlite_telemetry as telemetry
from grounded_mcp.stores import sqlite_vectors as vectors_
from grounded_mcp.stores import sqlite_write as writing
from grounded_mcp.stores.base import MAX_BATCH, Analyzer, Known, Noted, PendingPassage, RecalledItem, RepairReport
from grounded_mcp.stores.indexing import Tokens
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.rules import NOTE_MS
from grounded_mcp.stores.schema import Migration
from grounded_mcp.stores.sqlite_check import ANALYZER
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.stores.sqlite_files import filesystem_of, size_on_disk
from grounded_mcp.stores.sqlite_lease import Leases
from grounded_mcp.stores.sqlite_matrix import Matrices
from grounded_mcp.stores.sqlite_moving import Moving
from grounded_mcp.stores.sqlite_schema import copy_database, fresh_schema, open_database, shipped, timestamp
from grounded_mcp.values import (
    Evidence,
    EvidenceKind,
    Filter,
    Hit,
    Item,
    Kind,
    Passage,
    PassageId,
    Project,
    Record,
    SaveReport,
    ScopeFilter,
    Space,
    State,
    StoredPassage,
    Tally,
    Vector,
)

__all__ = ["RepairReport", "SqliteStore", "StoreOptions"]

logger = logging.getLogger(__name__)

SCRUB_SECONDS = 5.0
"""How long a deletion waits for other readers before the log that still holds the text is emptied."""


class SqliteStore(Moving):
    """``stores.base.Store`` over one SQLite file.

    ``create=False`` refuses to make a store where there is none. ``filesystem`` names the type of the file system
    under a path; on a network file system the store works without a write-ahead log and says so in ``info``.
    Raises on opening: StoreForeign, StoreDamaged, StoreNewer, StoreReadOnly, StoreFull, StoreBusy, StoreError.
    """

    def __init__(
        self,
        path: Path,
        analyzer: Analyzer,
        options: StoreOptions | None = None,
        *,
        create: bool = True,
        filesystem: Callable[[Path], str] = filesystem_of,
        migrations: Sequence[Migration] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._analyzer = analyzer
        self._clock = clock
        self._migrations = tuple(migrations or shipped())
        self._database, self._warnings = open_database(
            path, options or StoreOptions(), self._migrations, create=create, filesystem=filesystem
        )
        self._matrices = Matrices((options or StoreOptions()).vector_cache_mb * 1_048_576)
        self._leases = Leases(self._database, clock)
        self._log_holds_deleted = False

    @property
    def path(self) -> Path:
        """The file, with symbolic links resolved."""
        return self._database.path

    # --- writing ----------------------------------------------------------------------------------------------

    def save(
        self,
        records: Sequence[Record],
        *,
        supersede: Mapping[str, str] | None = None,
        retract: Mapping[str, int] | None = None,
        checkpoints: Mapping[str, str] | None = None,
        conflicts: Collection[tuple[str, str]] = (),
    ) -> SaveReport:
        if len(records) > MAX_BATCH:
            raise StoreError(f"{len(records)} records are too many for one save.", f"Save at most {MAX_BATCH}.")
        known = self._database.read(lambda db: writing.known_digests(db, [record.item.id for record in records]))
        tokens = Tokens(self._analyzer.index)
        tokens.prepare(records, known)

        def work(db: apsw.Connection) -> SaveReport:
            checking.mark_derived(db, self._analyzer.fingerprint)
            about = [num for session, place in (retract or {}).items() for num in sources.retract(db, session, place)]
            report = writing.save(db, records, supersede or {}, tokens, self._clock())
            sources.drop_unfounded(db, about)
            sources.note_checkpoints(db, checkpoints or {})
            sources.add_conflicts(db, conflicts)
            return report

        return self._database.write(work)

    def mark(self, ids: Sequence[str], state: State, at: float) -> int:
        return self._database.write(lambda db: writing.mark(db, ids, state, at))

    def delete(self, ids: Sequence[str], *, bury: Collection[str] = ()) -> int:
        def work(db: apsw.Connection) -> int:
            sources.bury(db, bury, self._clock())
            telemetry.forget_queries(db, ids)
            about = [num for item_id in ids for num in sources.retract(db, item_id, 0)]
            deleted = writing.delete(db, ids)
            sources.drop_unfounded(db, about)
            return deleted

        deleted = self._database.write(work)
        if deleted or self._log_holds_deleted:
            self._empty_log()
        return deleted

    def scrub(self) -> bool:
        self._database.write(lambda db: db.execute(sql.DROP_EMPTY_BUCKETS))
        return self._empty_log()

    def _empty_log(self) -> bool:
        """Pages are overwritten at once (``secure_delete``); what is left of what was there is in the log."""
        self._log_holds_deleted = not self._database.checkpoint(SCRUB_SECONDS)
        if self._log_holds_deleted:
            logger.warning("a reader keeps deleted text in %s-wal; the next deletion tries again", self.path)
        return not self._log_holds_deleted

    # --- searching --------------------------------------------------------------------------------------------

    def lexical(self, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
        return self._database.read(lambda db: reading.lexical(db, terms, where, k))

    def nearest(self, vector: Vector, where: Filter, k: int, *, space: Space | None = None) -> tuple[Hit, ...]:
        return self._database.read(lambda db: reading.nearest(db, self._matrices, vector, where, k, space))

    def timed(self, since: float, until: float, where: Filter, k: int) -> tuple[Hit, ...]:
        return self._database.read(lambda db: reading.timed(db, since, until, where, k))

    def foreground(self, facts: Collection[str], others: Collection[str], most: Most, weights: Weights) -> Foreground:
        return self._database.read(lambda db: leading.foreground(db, facts, others, most, weights))

    def naming(
        self, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
    ) -> tuple[Note, ...]:
        return self._database.read(lambda db: leading.naming(db, entities, facts, others, common, k))

    def mentions(
        self, entities: Sequence[EntityId], where: Filter, most: int
    ) -> Mapping[EntityId, tuple[PassageId, ...]]:
        return self._database.read(lambda db: reading.mentions(db, entities, where, most))

    def entities_of(self, passages: Sequence[PassageId]) -> Mapping[PassageId, tuple[EntityId, ...]]:
        return self._database.read(lambda db: mentioned.entities_of(db, passages))

    # --- reading ----------------------------------------------------------------------------------------------

    def fetch(self, ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
        return self._database.read(lambda db: reading.fetch(db, ids))

    def item(self, item_id: str) -> tuple[Item, tuple[Passage, ...]]:
        return self._database.read(lambda db: reading.item(db, item_id))

    def ids(self, *, after: str = "", limit: int) -> tuple[str, ...]:
        return self._database.read(lambda db: reading.ids(db, after, limit))

    def find(self, kind: Kind, scope: str, key: str) -> Item | None:
        return self._database.read(lambda db: reading.find(db, kind, scope, key))

    def history(self, item_id: str, limit: int) -> tuple[Item, ...]:
        return self._database.read(lambda db: reading.history(db, item_id, limit))

    def successor(self, item_id: str) -> Item | None:
        return self._database.read(lambda db: reading.successor(db, item_id))

    def known(self, kind: Kind, scope: str) -> Mapping[str, Known]:
        return self._database.read(lambda db: reading.known(db, kind, scope))

    def scopes(self) -> frozenset[str]:
        return self._database.read(reading.scopes)

    def projects(self) -> tuple[Project, ...]:
        return self._database.read(reading.projects)

    def register(self, project: Project, at: float, *, replaces: str | None = None) -> None:
        row = (project.key, project.name, project.reason, project.root, project.branch, project.worktree, at)

        def work(db: apsw.Connection) -> None:
            db.execute(sql.UNREGISTER, (replaces,))
            db.execute(sql.REGISTER, row)

        self._database.write(work)

    def recent(self, where: Filter, k: int) -> tuple[Item, ...]:
        return self._database.read(lambda db: reading.recent(db, where, k))

    def tallies(self, ids: Sequence[str]) -> Mapping[str, tuple[Tally, ...]]:
        return self._database.read(lambda db: reading.tallies(db, ids))

    def proven(self, where: Filter, weights: Mapping[EvidenceKind, float], k: int) -> tuple[tuple[str, ...], int]:
        return self._database.read(lambda db: reading.proven(db, where, weights, k))

    def evidence(self, item_id: str) -> tuple[Evidence, ...]:
        return self._database.read(lambda db: sources.evidence(db, item_id))

    def conflicts(self, ids: Sequence[str]) -> Mapping[str, tuple[Item, ...]]:
        return self._database.read(lambda db: reading.conflicts(db, ids))

    def checkpoints(self, prefix: str) -> Mapping[str, str]:
        return self._database.read(lambda db: sources.checkpoints(db, prefix))

    def buried(self) -> frozenset[str]:
        return self._database.read(sources.buried)

    # --- vectors ----------------------------------------------------------------------------------------------

    def pending(self, limit: int, *, after: PassageId | None = None) -> tuple[PendingPassage, ...]:
        return self._database.read(lambda db: vectors_.pending(db, max(0, limit), after or 0))

    def set_vectors(self, space: Space, vectors: Mapping[PassageId, Vector | None]) -> int:
        packed = vectors_.pack(space, vectors)
        return self._database.write(lambda db: vectors_.put(db, space, packed))

    def waiting(self, within: ScopeFilter | None = None) -> int:
        return self._database.read(lambda db: vectors_.waiting(db, within))

    def passages(self, within: ScopeFilter | None = None) -> int:
        return self._database.read(lambda db: vectors_.passages(db, within))

    def reset_vectors(self, space: Space | None = None) -> int:
        return self._database.write(lambda db: vectors_.reset(db, space))

    def space(self) -> Space | None:
        return self._database.read(vectors_.get_space)

    # --- telemetry --------------------------------------------------------------------------------------------

    def note(self, happened: Sequence[Event], *, keep_from: float, dropped: int = 0) -> None:
        self._database.write(lambda db: telemetry.note(db, happened, keep_from, dropped), within_ms=NOTE_MS)

    def noted(self, since: float, *, project: str | None = None, top: int = 0) -> Noted:
        return self._database.read(lambda db: telemetry.noted(db, since, project, top))

    def find_recall(self, *, id: str = "", session: str = "", projects: Collection[str] | None = None) -> str | None:
        return self._database.read(lambda db: telemetry.find(db, id, session, projects))

    def recalled_items(self, recall_ids: Sequence[str]) -> tuple[RecalledItem, ...]:
        return self._database.read(lambda db: telemetry.recalled_items(db, recall_ids))

    # --- living -----------------------------------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[None]:
        return self._database.reading()

    def lease(self, name: str, seconds: float) -> AbstractContextManager[bool]:
        return self._leases.hold(name, seconds)

    def info(self, *, scopes: Collection[str] | None = None) -> StoreInfo:
        return self._database.read(lambda db: self._info(db, scopes))

    def secret(self, name: str) -> bytes:
        found = self._database.read(lambda db: rows(db, sql.GET_SECRET, (name,)))
        return bytes(found[0][0]) if found else self._database.write(lambda db: _make_secret(db, name))

    def close(self) -> None:
        self._database.close()

    # --- care: what only this engine has ----------------------------------------------------------------------

    def check(self) -> tuple[str, ...]:
        """What is wrong with the store, as sentences; empty when it is sound. Reads everything."""
        return (*self._damage(), *self._database.read(self._findings))

    def _damage(self) -> tuple[str, ...]:
        schema = fresh_schema(self._migrations)
        # The full-text check is an INSERT to SQLite, so that it needs a write transaction where there is one.
        run = self._database.write if self._database.access == "write" else self._database.read
        found: list[str] = []
        try:
            run(lambda db: found.extend(checking.check(db, schema)))
        except StoreDamaged:
            if not found:  # else the end of the transaction met what is told here
                raise
        return tuple(dict.fromkeys(found))

    def repair(self) -> RepairReport:
        """Build every derived part anew, after setting a copy of a store that is damaged aside (case 35).

        Raises: StoreDamaged when what the rest is derived from cannot be read: then only a backup helps.
        """
        if self._database.access != "write":
            raise errors.read_only(self.path, "its file or folder is read-only")
        damage, findings = self._damage(), self._database.read(self._findings)
        kept = self.path.with_name(f"{self.path.name}.corrupt-{timestamp()}") if damage else None
        if kept:
            copy_database(self.path, kept, sound=False)
        schema = fresh_schema(self._migrations)
        tokenize = self._analyzer.index
        try:
            self._database.write(lambda db: checking.rebuild(db, schema, tokenize, self._analyzer.fingerprint))
        except StoreDamaged:
            if kept:
                kept.unlink()  # the store is as it was
            raise
        return RepairReport((*damage, *findings), self.check(), kept)

    def backup(self, target: Path) -> None:
        """A consistent, checked copy in one file, also while others write (case 38). Raises: StoreError."""
        schema = fresh_schema(self._migrations)
        copy_database(self.path, target, oracle=lambda db: checking.check(db, schema))

    def maintain(self) -> None:
        """Merge the full-text index and give free space back to the system. Takes seconds on a large store."""
        self._database.write(lambda db: db.execute(sql.FTS_OPTIMIZE))
        self._database.vacuum()

    def _info(self, db: apsw.Connection, scopes: Collection[str] | None) -> StoreInfo:
        from importlib.metadata import version  # 20 ms that a recall does not need

        vectors = vectors_.count(db, scopes)
        return StoreInfo(
            location=str(self.path),
            engine="sqlite",
            schema=self._database.schema,
            items=reading.count(db, scopes),
            passages=sum(vectors.values()),
            vectors=vectors,
            space=vectors_.get_space(db),
            bytes=size_on_disk(self.path),
            warnings=(*self._warnings, *self._findings(db)),
            versions={
                "SQLite": apsw.sqlite_lib_version(),
                "apsw": apsw.apsw_version(),
                "sqlite-vec": version("sqlite-vec"),
            },
        )

    def _findings(self, db: apsw.Connection) -> tuple[str, ...]:
        findings = []
        indexed = db.execute(sql.GET_META, (ANALYZER,)).fetchone()
        if indexed and indexed[0] != self._analyzer.fingerprint:
            findings.append(
                f"The text was indexed as {indexed[0]}, and the settings say {self._analyzer.fingerprint}: "
                "keyword search misses words until `grounded-mcp doctor --repair` has run."
            )
        if not mentioned.is_current(db):
            findings.append(
                "What is stored was read by another version for the names in it: the graph search misses them until "
                "`grounded-mcp doctor --repair` has run."
            )
        if self._log_holds_deleted:
            findings.append(f"Deleted text is still in {self.path}-wal, because another process was reading.")
        return tuple(findings)


def _make_secret(db: apsw.Connection, name: str) -> bytes:
    db.execute(sql.MAKE_SECRET, (name, secrets.token_bytes(32)))
    return bytes(rows(db, sql.GET_SECRET, (name,))[0][0])
