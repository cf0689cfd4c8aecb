"""A project's memory under another key, or out of the store: for a folder that moved, got a remote, or was a mistake.

Items keep their ids, passages their vectors. Everything is done in batches of one transaction each: an item is always
under one of both keys, and what was interrupted is gone on with by doing it again. Knows nothing about folders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from grounded_mcp.errors import InputError, NotFound, StoreBusy
from grounded_mcp.ingest import checkpoints
from grounded_mcp.ingest.sessions import LEASE as SESSIONS
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.roster import Census, Located
from grounded_mcp.values import Clean, Item, Project, Record

LEASE_S = 60.0
RENEW_S = 20.0
BATCH = 50
"""Items per transaction, as in a batch of documents."""
FORMER = "former:"
"""With a scope behind it, the checkpoint that names the scopes whose items came here, one a line: what was forgotten
there is told by an id that the scope is a part of."""

Step = Callable[[int, int], None]


class Movable(Store, Located, Census, Protocol):
    """A store whose projects can be renamed."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """``moved``: items. ``dropped``: documents that both had. ``retired``: of two items of one key, the older ones."""

    moved: int = 0
    dropped: int = 0
    retired: int = 0


def former(store: Store, scope: str) -> tuple[str, ...]:
    """The scopes that were renamed to this one. Raises: StoreError."""
    name = FORMER + scope
    return tuple(store.checkpoints(name).get(name, "").splitlines())


def holds(store: Store, scope: str) -> int:
    """How many items a scope holds. Raises: StoreError."""
    return sum(store.info(scopes=(scope,)).items.values())


def rename(store: Movable, old: Project, new: Project, now: float, step: Step, *, merge: bool = False) -> Renamed:
    """Move all that is ``old``'s to ``new``. ``step(done, total)``: in items.

    Where both have a document of one path, ``new``'s stays, which its next sync brings into step; of two other items
    of one key, the older becomes the newer one's history. Raises: InputError where ``new`` holds something, without
    ``merge``; StoreBusy while either is synced; StoreError: then what was moved stays moved.
    """
    if old.key == new.key:
        raise InputError("new", f"it is {old.key} already.", "Name another key.")
    with _Held(store, old.scope, new.scope) as held:
        total, there = holds(store, old.scope), holds(store, new.scope)
        if there and not merge:
            told = f"{new.key} holds {there:,} items already."
            raise InputError("new", told, "Add --merge to bring both together.")
        run = _Move(store, old.scope, new.scope)
        run.checkpoints()
        done = 0
        for page in _ids(store, old.scope):
            held.renew()
            run.take(page)
            done += len(page)
            step(done, max(done, total))
        store.register(new, now, replaces=old.key)
    return Renamed(run.moved, run.dropped, run.retired)


def remove(store: Movable, project: Project, step: Step) -> int:
    """Delete all that is a project's, and the project. Returns how many items went.

    Nothing is buried: this takes back a sync, so another sync of the folder brings its documents and sessions back.
    Raises: StoreBusy while the project is synced; StoreError.
    """
    with _Held(store, project.scope) as held:
        total, done = holds(store, project.scope), 0
        unread = [source for source, read in _read(store) if _is_of(read, project.scope)]
        store.save((), checkpoints=dict.fromkeys(unread, ""))  # one that is not legible has its source read again
        for page in _ids(store, project.scope):
            held.renew()
            done += store.delete(page)
            step(done, max(done, total))
        store.unregister(project.key)
    return done


def _ids(store: Movable, scope: str) -> Iterator[Sequence[str]]:
    """The ids of a scope's items, in pages of one batch."""
    after, waiting = "", []
    while page := store.ids(after=after, limit=1_000):
        after = page[-1]
        where = store.scopes_of(page)
        waiting += [each for each in page if where.get(each) == scope]
        while len(waiting) >= BATCH:
            yield waiting[:BATCH]
            del waiting[:BATCH]
    if waiting:
        yield waiting


def _read(store: Store) -> Iterator[tuple[str, checkpoints.Checkpoint]]:
    for source, text in store.checkpoints("").items():
        if found := checkpoints.parse(text):
            yield source, found


def _is_of(read: checkpoints.Checkpoint, scope: str) -> bool:
    return any(each.scope == scope for each in read.sessions.values())


class _Move:
    """One run: from one scope to another, and the counts."""

    def __init__(self, store: Movable, old: str, new: str) -> None:
        self.moved = self.dropped = self.retired = 0
        self._store = store
        self._old, self._new = old, new
        self._documents = store.known("doc", new)

    def checkpoints(self) -> None:
        """What says whose a session is, and whose what was forgotten was."""
        states = {FORMER + self._new: "\n".join(dict.fromkeys(self._lineage()))}
        for source, found in _read(self._store):
            if _is_of(found, self._old):
                sessions = {
                    name: replace(each, scope=self._new) if each.scope == self._old else each
                    for name, each in found.sessions.items()
                }
                states[source] = replace(found, sessions=sessions).dump()
        self._store.save((), checkpoints=states)

    def _lineage(self) -> Iterator[str]:
        for scope in (self._new, self._old):
            yield from (each for each in former(self._store, scope) if each != self._new)
        yield self._old

    def take(self, ids: Sequence[str]) -> None:
        """Some items, in one transaction, but for documents that are there already."""
        records, supersede, both = [], {}, []
        for item_id in ids:
            try:
                item, passages = self._store.item(item_id)
            except NotFound:  # forgotten meanwhile
                continue
            if item.kind == "doc" and item.key in self._documents:
                both.append(item_id)
                continue
            newer = self._newer(item)
            moved = replace(item, scope=self._new)
            if newer:
                text = item.body if item.body is not None else Clean("".join(each.body for each in passages))
                supersede[item_id] = newer.id
                moved, passages = replace(moved, state="superseded", body=text), ()
            records.append(Record(moved, passages))
        self.retired += self._store.save(records, supersede=supersede).superseded
        self.moved += len(records)
        self.dropped += self._store.delete(both) if both else 0

    def _newer(self, item: Item) -> Item | None:
        """What is at least as new under the same key where this one goes."""
        if item.key is None or item.state != "active":
            return None
        found = self._store.find(item.kind, self._new, item.key)
        return found if found and found.updated_at >= item.updated_at else None


class _Held:
    """The leases of all who write to these scopes, kept alive. Raises: StoreBusy where one is another process's."""

    def __init__(self, store: Store, *scopes: str) -> None:
        self._store = store
        self._names = (SESSIONS, *(f"sync:{scope}" for scope in scopes))
        self._stack = ExitStack()

    def __enter__(self) -> _Held:
        with ExitStack() as stack:
            self._take(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def renew(self) -> None:
        if time.monotonic() - self._renewed > RENEW_S:
            with ExitStack() as stack:
                self._take(stack)

    def _take(self, stack: ExitStack) -> None:
        if not all(stack.enter_context(self._store.lease(name, LEASE_S)) for name in self._names):
            raise StoreBusy("Another process is syncing it.", "Nothing is lost; run it again when that is done.")
        self._renewed = time.monotonic()
