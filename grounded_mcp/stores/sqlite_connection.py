"""Connections to one SQLite file: their settings, a small pool for all threads, and the two ways to use one.

``Database.read`` and ``Database.write`` are the only doors; each runs its work in one transaction and raises
nothing but ``StoreError``. Knows nothing about the tables.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from grounded_mcp.errors import StoreBusy, StoreError
from grounded_mcp.stopping import called_off
from grounded_mcp.stores import sqlite_errors as errors
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.sqlite_files import identity

logger = logging.getLogger(__name__)

Access = Literal["write", "read", "frozen"]
"""``read``: the file cannot be written. ``frozen``: nor can its folder, and no log is pending: read it as it is."""

_URI = {"write": "mode=rw", "read": "mode=ro", "frozen": "mode=ro&immutable=1"}

CONNECTIONS = 4
"""Most connections of one process: reads are short, and only one write runs at a time."""

OPENING_MS = 10_000
"""How long opening waits for a lock: eight processes that open a store at once take turns (case 21)."""

PRAGMAS = (
    "foreign_keys = ON",
    "secure_delete = ON",
    "temp_store = MEMORY",
    "cache_size = -8192",
    "cell_size_check = ON",
    "mmap_size = 0",
    "journal_size_limit = 16777216",
)
"""engine-facts, "Settings that follow from this". Every connection needs them; the file remembers none."""

STEPS = 50_000
"""Instructions of SQLite's machine between two looks at whether a read is still wanted: some milliseconds."""

MAX_LOG = 64 * 2**20
"""Bytes. A snapshot keeps the log from being written back into the file: one during which it grew as far is ended, so
that a read which nobody finishes does not fill the disk (case 27)."""

T = TypeVar("T")


def connect_bare(path: Path, access: Access = "write") -> apsw.Connection:
    """A connection to a file that exists, without our settings; it has not touched the file yet."""
    flags = apsw.SQLITE_OPEN_READWRITE if access == "write" else apsw.SQLITE_OPEN_READONLY
    db = apsw.Connection(f"{path.as_uri()}?{_URI[access]}", flags=flags | apsw.SQLITE_OPEN_URI)
    db.set_busy_timeout(OPENING_MS)  # before anything else: even a first PRAGMA can meet another process's lock
    return db


def connect(path: Path, access: Access = "write", *, durable: bool = False) -> apsw.Connection:
    """A connection with our settings to a file that exists. ``durable``: survive power loss too, at a price."""
    db = connect_bare(path, access)
    try:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        db.enable_load_extension(True)
        db.load_extension(_vector_functions())
        db.enable_load_extension(False)
        for pragma in (*PRAGMAS, f"synchronous = {'FULL' if durable else 'NORMAL'}"):
            db.execute(f"PRAGMA {pragma}")
    except BaseException:
        db.close()
        raise
    return db


@cache
def _vector_functions() -> str:
    """The path of sqlite-vec's loadable library. Importing the package would import numpy, a quarter of a second."""
    found = importlib.util.find_spec("sqlite_vec")
    if found is None or not found.submodule_search_locations:
        raise StoreError("The package sqlite-vec is not installed.", "Install grounded-memory-mcp again.")
    return str(Path(found.submodule_search_locations[0]) / "vec0")


def rows(db: apsw.Connection, statement: str, bindings: apsw.Bindings = ()) -> list[Any]:
    """Every row of a statement, so that none is left running when its transaction ends."""
    return list(db.execute(statement, bindings))


@contextmanager
def transaction(db: apsw.Connection, begin: str) -> Iterator[None]:
    """One transaction that is rolled back unless its block and its commit succeed."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


class Database:
    """One SQLite file, open. Safe to use from any thread: at most ``CONNECTIONS`` connections, one per running call.

    ``found`` is the identity of the file that was opened: work on a file that is no longer the one under ``path``
    is refused (case 37).
    """

    def __init__(
        self, path: Path, options: StoreOptions, access: Access, found: tuple[int, int], schema: int, *, durable: bool
    ) -> None:
        self.path = path
        self.access = access
        self.schema = schema
        self._options = options
        self._found = found
        self._durable = durable
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._turn = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._idle_lock = threading.Lock()
        self._closed = False
        self._here = threading.local()

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run ``work`` on one snapshot of the store: the one that this thread holds, if any. Raises: StoreError."""
        held: apsw.Connection | None = getattr(self._here, "snapshot", None)
        if held is not None:
            self._check_log()
            with self._translated():
                return work(held)
        with self._snapshot() as db:
            return work(db)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Every ``read`` of this thread in the block is of one snapshot. Raises: StoreError."""
        if getattr(self._here, "snapshot", None) is not None:
            yield
            return
        with self._snapshot() as db:
            self._here.snapshot, self._here.log = db, self._log_bytes()
            try:
                yield
            finally:
                self._here.snapshot = None

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        with self._translated(), self._connection(self._options.busy_timeout_ms / 1e3) as db:
            self._check_in_place()
            db.set_busy_timeout(self._options.busy_timeout_ms)
            with transaction(db, "BEGIN"), _stoppable(db):
                self._check_schema(db)
                yield db

    def write(self, work: Callable[[apsw.Connection], T], *, within_ms: float | None = None) -> T:
        """Run ``work`` in one write transaction, again if another process was in the way.

        Raises: StoreBusy when no turn came ``within_ms`` (``max_batch_wait_ms`` if that is less, or nothing is given);
        StoreError. Then nothing was stored.
        """
        if self.access != "write":
            raise errors.read_only(self.path, "its file or folder is read-only")
        longest = self._options.max_batch_wait_ms
        until = time.monotonic() + (longest if within_ms is None else min(longest, within_ms)) / 1e3
        with self._translated(), self._my_turn(until), self._connection(_left(until)) as db:
            self._check_in_place()
            result = self._persist(db, work, until)
            self._check_in_place()
            return result

    def checkpoint(self, seconds: float) -> bool:
        """Write the whole log back into the file and empty it; False when a reader was in the way for that long."""
        until = time.monotonic() + seconds
        with self._translated(), self._my_turn(until), self._connection(_left(until)) as db:
            db.set_busy_timeout(int(_left(until) * 1e3))
            try:
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError:
                return False
            return True

    def vacuum(self) -> None:
        """Rewrite the file without its free pages, then empty the log. Raises: StoreBusy, StoreFull."""
        until = time.monotonic() + self._options.max_batch_wait_ms / 1e3
        with self._translated(), self._my_turn(until), self._connection(_left(until)) as db:
            db.set_busy_timeout(int(_left(until) * 1e3))
            db.execute("VACUUM")
        self.checkpoint(_left(until))

    def close(self) -> None:
        """Close every idle connection now and every other when its call ends."""
        with self._idle_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            with suppress(apsw.Error):
                db.close()

    def in_place(self) -> bool:
        return identity(self.path) == self._found

    def _check_in_place(self) -> None:
        if not self.in_place():
            raise errors.moved(self.path)

    def _check_log(self) -> None:
        size = self._log_bytes()
        if size > MAX_LOG and size - self._here.log > MAX_LOG // 2:  # else it was as long before
            raise errors.outlived(self.path)

    def _log_bytes(self) -> int:
        try:
            return os.stat(f"{self.path}-wal").st_size  # noqa: PTH116 - for every read of a block
        except OSError:
            return 0

    def _check_schema(self, db: apsw.Connection) -> None:
        """Another process may have migrated the file while this one had it open."""
        version = int(db.pragma("user_version"))
        if version != self.schema:
            raise errors.newer(self.path, version, self.schema, None)

    def _translated(self) -> AbstractContextManager[None]:
        return errors.translated(self.path, self.in_place)

    def _persist(self, db: apsw.Connection, work: Callable[[apsw.Connection], T], until: float) -> T:
        while True:
            db.set_busy_timeout(min(self._options.busy_timeout_ms, int(_left(until) * 1e3)))
            try:
                with transaction(db, "BEGIN IMMEDIATE"):
                    self._check_schema(db)
                    result = work(db)
            except apsw.BusyError:
                if not _left(until):
                    raise
                time.sleep(random.uniform(0.005, 0.05))  # noqa: S311 - jitter, so that processes do not march in step
            else:
                return result

    @contextmanager
    def _my_turn(self, until: float) -> Iterator[None]:
        """Writes of this process queue here, in order of arrival, rather than for a connection or for SQLite's lock."""
        if not self._turn.acquire(timeout=_left(until)):
            raise self._busy()
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _connection(self, patience: float) -> Iterator[apsw.Connection]:
        if not self._slots.acquire(timeout=patience):
            raise self._busy()
        try:
            db = self._take()
            try:
                yield db
            finally:
                self._give_back(db)
        finally:
            self._slots.release()

    def _take(self) -> apsw.Connection:
        with self._idle_lock:
            if self._closed:
                raise StoreError("The store is closed.", "Open it again.")
            if self._idle:
                return self._idle.pop()
        return connect(self.path, self.access, durable=self._durable)

    def _give_back(self, db: apsw.Connection) -> None:
        with self._idle_lock:
            # A frozen file's pages are cached for good, so that its connections are not kept.
            keep = self.access == "write" and not self._closed and not db.in_transaction
            if keep:
                self._idle.append(db)
        if not keep:
            db.close()

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"The store {self.path} is busy with other work of this process; nothing was stored.",
            "Try again in a moment.",
        )


@contextmanager
def _stoppable(db: apsw.Connection) -> Iterator[None]:
    """What is read in the block ends early once nobody waits for it; a write is always done or undone as a whole."""
    db.set_progress_handler(called_off, STEPS)
    try:
        yield
    finally:
        db.set_progress_handler(None)


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
