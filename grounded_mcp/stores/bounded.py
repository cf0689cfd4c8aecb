"""A store as one identity may use it: the single place where a team's memories are kept apart.

``BoundedStore`` is a ``Store`` over another one. Whatever is read passes a set of scopes, inside the search where there
is one; whatever is changed must lie in a set of scopes, before and after. All that stands on a store - recall, packs,
pointers, traces, statistics - is bounded by standing on this one. What may not be read is not there: ``NotFound``, or
left out. It inherits nothing, so that a new verb of ``Store`` is missing here until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

from grounded_mcp.accounts import StoreInfo
from grounded_mcp.entities import EntityId
from grounded_mcp.errors import NotAllowed, NotFound
from grounded_mcp.events import Event
from grounded_mcp.foreground import ELSEWHERE, GLOBAL_SCOPE, Foreground, Most, Note, Weights
from grounded_mcp.stores.base import Known, Noted, PendingPassage, RecalledItem, Store
from grounded_mcp.stores.roster import Located
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

ASK = "Ask whoever runs this server for a token with that right."


@dataclass(frozen=True, slots=True)
class Rights:
    """Of one identity: the keys of its projects, and the scopes whose items it may read and may change.

    ``global`` can be read by everyone (R9), and changed by those who were given it.
    """

    projects: frozenset[str]
    reads: frozenset[str]
    writes: frozenset[str]


def rights(projects: Iterable[str], scopes: Iterable[str], *, read_only: bool) -> Rights:
    """What a token with these projects and further scopes gives."""
    keys = frozenset(projects)
    given = frozenset(f"project:{key}" for key in keys) | frozenset(scopes)
    return Rights(keys, given | {GLOBAL_SCOPE}, frozenset() if read_only else given)


class Boundable(Store, Located, Protocol):
    """A store that says where its items lie."""


class BoundedStore:
    """``stores.base.Store`` within ``Rights``. Closing it leaves the store open: others stand on it, too."""

    def __init__(self, store: Boundable, rights: Rights) -> None:
        self._store = store
        self._rights = rights

    # --- what is allowed --------------------------------------------------------------------------------------

    def _within(self, where: Filter) -> Filter:
        reads = self._rights.reads
        return replace(where, scopes=reads if where.scopes is None else where.scopes & reads)

    def _may_read(self, item: Item) -> bool:
        return item.scope in self._rights.reads

    def _readable(self, ids: Iterable[str]) -> list[str]:
        """Those of the items that are there and may be read."""
        chosen = list(dict.fromkeys(ids))
        scopes = self._store.scopes_of(chosen) if chosen else {}
        return [item_id for item_id in chosen if scopes.get(item_id) in self._rights.reads]

    def _seen(self, item_id: str) -> bool:
        return bool(self._readable([item_id]))

    def _check_write(self, scope: str) -> None:
        if scope not in self._rights.writes:
            raise NotAllowed(f"This token may not change anything in {scope}.", ASK)

    def _check_changes(self, ids: Iterable[str]) -> None:
        """Raises: NotFound for what may not be read, as for what is not there; NotAllowed."""
        chosen = list(dict.fromkeys(ids))
        scopes = self._store.scopes_of(chosen) if chosen else {}
        for item_id in chosen:
            scope = scopes.get(item_id)
            if scope is None or scope not in self._rights.reads:
                raise _nothing("id", item_id)
            self._check_write(scope)

    def _check_records(self, records: Sequence[Record]) -> None:
        """An item may be new; if not, it is one that may be changed."""
        for record in records:
            self._check_write(record.item.scope)
        for item_id, scope in self._store.scopes_of([record.item.id for record in records]).items():
            if scope not in self._rights.writes:
                raise _nothing("id", item_id)

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
        if checkpoints:
            _refuse("note how far sources were read")
        self._check_records(records)
        new = {record.item.id for record in records}
        self._check_changes({*(supersede or {}), *(supersede or {}).values(), *(retract or {})} - new)
        seen = new.union(self._readable(each for pair in conflicts for each in pair))
        pairs = [pair for pair in conflicts if seen.issuperset(pair)]
        return self._store.save(records, supersede=supersede, retract=retract, conflicts=pairs)

    def mark(self, ids: Sequence[str], state: State, at: float) -> int:
        readable = self._readable(ids)
        self._check_changes(readable)
        return self._store.mark(readable, state, at)

    def delete(self, ids: Sequence[str], *, bury: Collection[str] = ()) -> int:
        if not self._rights.writes:
            _refuse("delete anything")
        self._check_changes(ids)
        return self._store.delete(ids, bury=bury)

    def scrub(self) -> bool:
        return self._store.scrub()

    def register(self, project: Project, at: float, *, replaces: str | None = None) -> None:
        """A project that is known stays as it was registered: where its folder is, this server need not know."""
        self._check_write(project.scope)
        if replaces is not None:
            _refuse("rename a project")
        if all(each.key != project.key for each in self._store.projects()):
            self._store.register(project, at)

    # --- searching --------------------------------------------------------------------------------------------

    def lexical(self, terms: Sequence[str], where: Filter, k: int) -> tuple[Hit, ...]:
        return self._store.lexical(terms, self._within(where), k)

    def nearest(self, vector: Vector, where: Filter, k: int, *, space: Space | None = None) -> tuple[Hit, ...]:
        return self._store.nearest(vector, self._within(where), k, space=space)

    def timed(self, since: float, until: float, where: Filter, k: int) -> tuple[Hit, ...]:
        return self._store.timed(since, until, self._within(where), k)

    def mentions(
        self, entities: Sequence[EntityId], where: Filter, most: int
    ) -> Mapping[EntityId, tuple[PassageId, ...]]:
        return self._store.mentions(entities, self._within(where), most)

    def foreground(self, facts: Collection[str], others: Collection[str], most: Most, weights: Weights) -> Foreground:
        return self._store.foreground(self._of(facts), self._of(others), most, weights)

    def naming(
        self, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
    ) -> tuple[Note, ...]:
        return self._store.naming(entities, self._of(facts), self._of(others), common, k)

    def recent(self, where: Filter, k: int) -> tuple[Item, ...]:
        return self._store.recent(self._within(where), k)

    def proven(self, where: Filter, weights: Mapping[EvidenceKind, float], k: int) -> tuple[tuple[str, ...], int]:
        return self._store.proven(self._within(where), weights, k)

    def _of(self, scopes: Collection[str]) -> frozenset[str]:
        return self._rights.reads.intersection(scopes)

    # --- reading ----------------------------------------------------------------------------------------------

    def fetch(self, ids: Sequence[PassageId]) -> Mapping[PassageId, StoredPassage]:
        return {key: found for key, found in self._store.fetch(ids).items() if self._may_read(found.item)}

    def entities_of(self, passages: Sequence[PassageId]) -> Mapping[PassageId, tuple[EntityId, ...]]:
        return self._store.entities_of(list(self.fetch(passages)))

    def item(self, item_id: str) -> tuple[Item, tuple[Passage, ...]]:
        item, passages = self._store.item(item_id)
        if not self._may_read(item):
            raise _nothing("id", item_id)
        return item, passages

    def ids(self, *, after: str = "", limit: int) -> tuple[str, ...]:
        found: list[str] = []
        while len(found) < limit and (page := self._store.ids(after=after, limit=limit)):
            found += self._readable(page)
            after = page[-1]
        return tuple(found[: max(0, limit)])

    def find(self, kind: Kind, scope: str, key: str) -> Item | None:
        return self._store.find(kind, scope, key) if scope in self._rights.reads else None

    def history(self, item_id: str, limit: int) -> tuple[Item, ...]:
        if not self._seen(item_id):
            return ()
        return tuple(item for item in self._store.history(item_id, limit) if self._may_read(item))

    def successor(self, item_id: str) -> Item | None:
        found = self._store.successor(item_id) if self._seen(item_id) else None
        return found if found is not None and self._may_read(found) else None

    def known(self, kind: Kind, scope: str) -> Mapping[str, Known]:
        return self._store.known(kind, scope) if scope in self._rights.reads else {}

    def scopes(self) -> frozenset[str]:
        return self._store.scopes() & self._rights.reads

    def projects(self) -> tuple[Project, ...]:
        """Those of the identity, and of none where its folder is: no file of this machine is looked at for them."""
        mine = (each for each in self._store.projects() if each.key in self._rights.projects)
        return tuple(replace(each, root=ELSEWHERE, branch=None, worktree=None) for each in mine)

    def evidence(self, item_id: str) -> tuple[Evidence, ...]:
        return self._store.evidence(item_id) if self._seen(item_id) else ()

    def tallies(self, ids: Sequence[str]) -> Mapping[str, tuple[Tally, ...]]:
        return self._store.tallies(self._readable(ids))

    def conflicts(self, ids: Sequence[str]) -> Mapping[str, tuple[Item, ...]]:
        found = self._store.conflicts(self._readable(ids)).items()
        mine = {item_id: tuple(filter(self._may_read, others)) for item_id, others in found}
        return {item_id: others for item_id, others in mine.items() if others}

    def checkpoints(self, prefix: str) -> Mapping[str, str]:
        """None: sources are read by whoever runs the server."""
        return {}

    def buried(self) -> frozenset[str]:
        """Digests, by a key that no caller sees."""
        return self._store.buried()

    # --- vectors: made for the whole store by whoever has time, and seen by nobody ----------------------------

    def pending(self, limit: int, *, after: PassageId | None = None) -> tuple[PendingPassage, ...]:
        return ()

    def waiting(self, within: ScopeFilter | None = None) -> int:
        return self._store.waiting(self._admitted(within))

    def passages(self, within: ScopeFilter | None = None) -> int:
        return self._store.passages(self._admitted(within))

    def _admitted(self, within: ScopeFilter | None) -> ScopeFilter:
        reads, asked = self._rights.reads, within or ScopeFilter(None, None, "none")
        facts, others = (reads if scopes is None else scopes & reads for scopes in (asked.facts, asked.others))
        return replace(asked, facts=facts, others=others)

    def set_vectors(self, space: Space, vectors: Mapping[PassageId, Vector | None]) -> int:
        _refuse("store vectors")

    def reset_vectors(self, space: Space | None = None) -> int:
        _refuse("drop vectors")

    def space(self) -> Space | None:
        return self._store.space()

    # --- telemetry --------------------------------------------------------------------------------------------

    def note(self, happened: Sequence[Event], *, keep_from: float, dropped: int = 0) -> None:
        self._store.note(happened, keep_from=keep_from, dropped=dropped)

    def noted(self, since: float, *, project: str | None = None, top: int = 0) -> Noted:
        """Of one project that is the identity's. Its items are named only where they may be read."""
        if project not in self._rights.projects:
            return Noted((), (), (), 0)
        found = self._store.noted(since, project=project, top=top)
        mine = set(self._readable(item.id for item in found.items))
        return replace(found, items=tuple(item for item in found.items if item.id in mine), dropped=0)

    def find_recall(self, *, id: str = "", session: str = "", projects: Collection[str] | None = None) -> str | None:
        mine = self._rights.projects if projects is None else self._rights.projects.intersection(projects)
        return self._store.find_recall(id=id, session=session, projects=mine)

    def recalled_items(self, recall_ids: Sequence[str]) -> tuple[RecalledItem, ...]:
        recalls = [each for each in recall_ids if self.find_recall(id=each)]
        found = self._store.recalled_items(recalls)
        mine = set(self._readable(each.item for each in found))
        return tuple(each for each in found if each.item in mine)

    # --- living -----------------------------------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[None]:
        return self._store.reading()

    def lease(self, name: str, seconds: float) -> AbstractContextManager[bool]:
        return self._store.lease(name, seconds)

    def info(self, *, scopes: Collection[str] | None = None) -> StoreInfo:
        """Counts of what may be read; where the store lies, how large it is and what is wrong with it are not told."""
        mine = self._rights.reads if scopes is None else self._of(scopes)
        return replace(self._store.info(scopes=mine), location="", bytes=0, warnings=(), versions={})

    def secret(self, name: str) -> bytes:
        return self._store.secret(name)

    def close(self) -> None:
        return None


def _nothing(field: str, item_id: str) -> NotFound:
    return NotFound(field, f"there is no item {item_id}.", "Use an id that a recall returned.")


def _refuse(what: str) -> NoReturn:
    raise NotAllowed(f"This token may not {what}.", ASK)
