"""The Postgres store: rows, inverted index and vectors of many memories on one server. The door to them.

``postgres_schema`` opens stores, ``postgres_connection`` runs transactions, ``postgres_write``, ``postgres_read`` and
``postgres_vectors`` do the work of the verbs, ``postgres_sql`` holds the statements. Any thread may call any verb, and
no verb keeps a connection longer than its transaction.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from zlib import crc32

from grounded_mcp.accounts import StoreInfo
from grounded_mcp.entities import EntityId
from grounded_mcp.errors import StoreBusy, StoreError
from grounded_mcp.events import Event
from grounded_mcp.foreground import Foreground, Most, Note, Weights
from grounded_mcp.stores import postgres_check as checking
from grounded_mcp.stores import postgres_entities as mentioned
from grounded_mcp.stores import postgres_foreground as leading
from grounded_mcp.stores import postgres_read as reading
from grounded_mcp.stores import postgres_sources as sources
from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores import postgres_telemetry as telemetry
from grounded_mcp.stores import postgres_vectors as vectors_
from grounded_mcp.stores import postgres_write as writing
from grounded_mcp.stores.base import (
    MAX_BATCH,
    Analyzer,
    Known,
    Noted,
    PendingPassage,
    RecalledItem,
    RepairReport,
)
from grounded_mcp.stores.indexing import Tokens
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.postgres_connection import Connection, rows, run
from grounded_mcp.stores.postgres_lease import Leases
from grounded_mcp.stores.postgres_moving import Moving
from grounded_mcp.stores.postgres_schema import open_database, shipped
from grounded_mcp.stores.postgres_terms import Changes
from grounded_mcp.stores.rules import NOTE_MS
from grounded_mcp.stores.schema import Migration
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

__all__ = ["PostgresStore"]

logger = logging.getLogger(__name__)

INDEX_SECONDS = 3600
"""How long one process may take to make the index of vectors before another begins anew."""


class PostgresStore(Moving):
    """``stores.base.Store`` over one schema of a Postgres database.

    ``create=False`` refuses to make a store where there is none. Raises on opening: StoreUnreachable, StoreForeign,
    StoreNewer, StoreReadOnly, StoreBusy, StoreError.
    """

    def __init__(
        self,
        url: str,
        analyzer: Analyzer,
        options: StoreOptions | None = None,
        *,
        create: bool = True,
        migrations: Sequence[Migration] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._analyzer = analyzer
        self._clock = clock
        self._options = options or StoreOptions()
        self._number = crc32(self._options.postgres.schema.encode()) >> 1
        self._database = open_database(url, self._options, tuple(migrations or shipped()), create=create)
        self._leases = Leases(self._database, clock)

    @property
    def path(self) -> None:
        """A server's files are its own: nothing lies beside them."""
        return

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

        def work(db: Connection) -> SaveReport:
            checking.mark_derived(db, self._analyzer.fingerprint)
            buckets = writing.buckets_of(db, records)
            locked = writing.lock(db, self._number, (supersede or {}).keys(), (retract or {}).keys(), records, buckets)
            about = [num for session, place in (retract or {}).items() for num in sources.retract(db, session, place)]
            state = writing.Writing(db, Changes(), tokens, buckets, locked, self._clock())
            report = writing.save(state, records, supersede or {})
            writing.delete_numbered(db, state.changes, sources.unfounded(db, about))
            sources.note_checkpoints(db, checkpoints or {})
            sources.add_conflicts(db, conflicts)
            state.changes.settle(db)
            return report

        return self._database.write(work)

    def mark(self, ids: Sequence[str], state: State, at: float) -> int:
        def work(db: Connection) -> int:
            locked = writing.lock(db, self._number, ids)
            marking = writing.Writing(db, Changes(), Tokens(self._analyzer.index), {}, locked, at)
            changed = writing.mark(marking, ids, state)
            marking.changes.settle(db)
            return changed

        return self._database.write(work)

    def delete(self, ids: Sequence[str], *, bury: Collection[str] = ()) -> int:
        def work(db: Connection) -> int:
            locked = writing.lock(db, self._number, ids, ids)
            sources.bury(db, bury, self._clock())
            telemetry.forget_queries(db, ids)
            about = [num for item_id in ids for num in sources.retract(db, item_id, 0)]
            changes = Changes()
            deleted = writing.delete(db, changes, ids, locked)
            writing.delete_numbered(db, changes, sources.unfounded(db, about))
            changes.settle(db)
            return deleted

        return self._database.write(work)

    def scrub(self) -> bool:
        self._database.write(lambda db: run(db, sql.DROP_EMPTY_BUCKETS))
        try:
            self._database.alone(sql.SCRUB)
        except StoreBusy:
            logger.warning("others are reading %s: what was replaced is still in its files", self._database.place)
            return False
        return True

    # --- searching --------------------------------------------------------------------------------------------

    def lexical(self, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
        return self._database.read(lambda db: reading.lexical(db, terms, where, k))

    def nearest(self, vector: Vector, where: Filter, k: int, *, space: Space | None = None) -> tuple[Hit, ...]:
        exact = self._options.postgres.exact_vectors
        return self._database.read(lambda db: reading.nearest(db, vector, where, k, space, exact))

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

        def work(db: Connection) -> None:
            run(db, sql.UNREGISTER, (replaces,))
            run(db, sql.REGISTER, row)

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
        stored = self._database.write(lambda db: vectors_.put(db, self._number, space, packed))
        self._make_index()
        return stored

    def _make_index(self) -> None:
        """Once there are enough vectors; writers and searches go on meanwhile."""
        exact = self._options.postgres.exact_vectors
        if self._database.read(lambda db: vectors_.wants_index(db, exact)) is None:
            return
        with self._leases.hold("index", INDEX_SECONDS) as mine:
            wanted = self._database.read(lambda db: vectors_.wants_index(db, exact)) if mine else None
            if wanted is not None:
                self._database.alone(sql.DROP_UNFINISHED)
                self._database.alone(wanted)

    def waiting(self, within: ScopeFilter | None = None) -> int:
        return self._database.read(lambda db: vectors_.waiting(db, within))

    def passages(self, within: ScopeFilter | None = None) -> int:
        return self._database.read(lambda db: vectors_.passages(db, within))

    def reset_vectors(self, space: Space | None = None) -> int:
        return self._database.write(lambda db: vectors_.reset(db, self._number, space))

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

    # --- care -------------------------------------------------------------------------------------------------

    def check(self) -> tuple[str, ...]:
        """What is wrong with the store, as sentences; empty when it is sound. Reads everything."""
        return self._database.read(lambda db: (*checking.check(db), *self._findings(db)))

    def repair(self) -> RepairReport:
        """Build every derived part anew, in one transaction. Nothing is set aside: the rows are left as they are."""
        found = self.check()
        tokenize = self._analyzer.index
        self._database.write(lambda db: checking.rebuild(db, tokenize, self._analyzer.fingerprint))
        return RepairReport(found, self.check(), None)

    def maintain(self) -> None:
        """Give free space back to the tables, look at what they hold, so that searches are planned well, and make the
        index of vectors if they are many."""
        self._database.alone(sql.MAINTAIN)
        self._make_index()

    def _info(self, db: Connection, scopes: Collection[str] | None) -> StoreInfo:
        vectors = vectors_.count(db, scopes)
        server, pgvector = rows(db, sql.VERSIONS)[0]
        return StoreInfo(
            location=self._database.place,
            engine="postgres",
            schema=self._database.schema,
            items=reading.count(db, scopes),
            passages=sum(vectors.values()),
            vectors=vectors,
            space=vectors_.get_space(db),
            bytes=rows(db, sql.SIZE)[0][0],
            warnings=self._findings(db),
            versions={"Postgres": server, "pgvector": pgvector},
        )

    def _findings(self, db: Connection) -> tuple[str, ...]:
        findings = []
        indexed = rows(db, sql.GET_META, (checking.ANALYZER,))
        if indexed and indexed[0][0] != self._analyzer.fingerprint:
            findings.append(
                f"The text was indexed as {indexed[0][0]}, and the settings say {self._analyzer.fingerprint}: "
                "keyword search misses words until `grounded-mcp doctor --repair` has run."
            )
        if not mentioned.is_current(db):
            findings.append(
                "What is stored was read by another version for the names in it: the graph search misses them until "
                "`grounded-mcp doctor --repair` has run."
            )
        return tuple(findings)


def _make_secret(db: Connection, name: str) -> bytes:
    run(db, sql.MAKE_SECRET, (name, secrets.token_bytes(32)))
    return bytes(rows(db, sql.GET_SECRET, (name,))[0][0])
