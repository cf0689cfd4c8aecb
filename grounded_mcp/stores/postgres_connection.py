"""Connections to one Postgres schema: their settings, the driver's pool, and the ways to use one.

``Database.read`` and ``Database.write`` are the doors; each runs its work in one transaction, holds a connection no
longer than that, and raises nothing but ``StoreError``. Knows nothing about the tables.
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg
import psycopg_pool
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format, TransactionStatus

from grounded_mcp.errors import StoreError
from grounded_mcp.stopping import called_off
from grounded_mcp.stores import postgres_errors as errors
from grounded_mcp.stores.options import StoreOptions

if TYPE_CHECKING:
    from psycopg.abc import PQGen

logger = logging.getLogger(__name__)

NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A server that vanished without a word is noticed within a minute."""

# Not used by what we ask, and each stalls a short query: compiling it, and starting other processes for it.
_STEADY = "jit = off", "max_parallel_workers_per_gather = 0"
_ENDED = (psycopg.OperationalError, psycopg.InterfaceError)
_ENDINGS = ("08", "57P")
"""SQLSTATE classes of a connection that ended; one that ended without a word has none."""
_SCHEMA_VERSION = "SELECT value FROM meta WHERE name = 'schema'"
MAX_SCANNED = 200_000
"""Vectors that the index gives at most while a filter leaves too few of them; then all admitted ones are compared."""
TRIES = 20
"""A write that meets others as often as that is given up, however much time is left."""

CANCEL_S = 2.0
"""What asking the server to end a statement may take; after that the connection is given up."""

T = TypeVar("T")
RV = TypeVar("RV")


# --- values -----------------------------------------------------------------------------------------------


class _TextDumper(Dumper):
    """Postgres cannot hold the character NUL: it is kept as two others (case 14)."""

    def dump(self, obj: str) -> bytes:
        if "\0" in obj or "\1" in obj:
            obj = obj.replace("\1", "\1\1").replace("\0", "\1\2")
        return obj.encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return re.sub("\1([\1\2])", lambda m: "\1" if m[1] == "\1" else "\0", text) if "\1" in text else text


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY


class Embedding(bytes):
    """A vector in the form in which pgvector sends and receives one; a parameter that the statement casts."""


class _EmbeddingDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Embedding) -> bytes:
        return obj


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(Embedding, _EmbeddingDumper)
    for loader in (_TextLoader, _BinaryTextLoader):
        adapters.register_loader("text", loader)
    return adapters


ADAPTERS = _adapters()


class _Context:
    adapters = ADAPTERS
    connection = None


# --- one connection ---------------------------------------------------------------------------------------


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One whose statement ends early, while ``stoppable``, once the work of its thread was called off.

    The driver looks up from waiting for the server ten times a second, and then that is asked. The server is told to
    end the statement, which fails as after any other error: the connection can be used again.
    """

    stoppable = False

    def wait(self, gen: PQGen[RV], *given: Any, **more: Any) -> RV:
        return super().wait(self._attended(gen) if self.stoppable else gen, *given, **more)

    def _attended(self, gen: PQGen[RV]) -> PQGen[RV]:
        cancelled = False
        try:
            waits = next(gen)
            while True:
                ready = yield waits
                if not ready and not cancelled and called_off():
                    self.cancel_safe(timeout=CANCEL_S)
                    cancelled = True
                waits = gen.send(ready)
        except StopIteration as ended:
            return cast("RV", ended.value)


def rows(db: Connection, statement: str, given: Any = None) -> list[Any]:
    """Every row of a statement."""
    return db.execute(statement, given, binary=True).fetchall()


def run(db: Connection, statement: str, given: Any = None) -> int:
    """How many rows a statement changed."""
    return db.execute(statement, given).rowcount


def run_many(db: Connection, statement: str, given: Sequence[Any]) -> None:
    if given:
        with db.cursor() as cursor:
            cursor.executemany(statement, given)


def several(db: Connection, statements: str) -> tuple[Any, ...] | None:
    """Statements without parameters in one round trip; the first row of the last one, if it has rows."""
    cursor = db.execute(statements, prepare=False)
    while cursor.nextset():
        pass
    return cursor.fetchone() if cursor.description else None


def place_of(url: str, schema: str) -> str:
    """A store's name without its password."""
    given = conninfo_to_dict(url)
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')} (schema {schema})"


def connect(url: str, options: StoreOptions) -> Connection:
    """A connection with our settings, outside any transaction."""
    db = Connection.connect(url, autocommit=True, context=cast(Any, _Context()), **_parameters(options))
    try:
        configure(options)(db)
    except BaseException:
        db.close()
        raise
    return db


def _parameters(options: StoreOptions) -> dict[str, Any]:
    seconds = max(2, round(options.postgres.connect_timeout_s))  # libpq takes whole seconds, and 2 at least
    return {"connect_timeout": seconds, "application_name": "grounded-mcp", "client_encoding": "UTF8", **KEEPALIVE}


def configure(options: StoreOptions) -> Callable[[Connection], None]:
    """What every connection is told first. pgvector may live in any schema: its own is looked up."""
    schema, most = options.postgres.schema, round(options.postgres.statement_timeout_s * 1e3)
    if not NAME.fullmatch(schema):
        raise StoreError(f"{schema!r} cannot be the name of a schema.", "Small letters, digits and _ make one.")
    settings = [*_STEADY, f"statement_timeout = {most}", f"hnsw.ef_search = {options.postgres.ef_search}"]
    settings += ["hnsw.iterative_scan = strict_order", f"hnsw.max_scan_tuples = {MAX_SCANNED}"]
    path = f"""SELECT set_config('search_path', '"{schema}"' || coalesce((
        SELECT ', ' || quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'vector'), ''), false)"""  # noqa: S608 - a name of small letters
    statements = "; ".join([*(f"SET {each}" for each in settings), path])

    def configured(db: Connection) -> None:
        several(db, statements)

    return configured


# --- all of them ------------------------------------------------------------------------------------------


class Database:
    """One schema of one database, open. Safe to use from any thread."""

    def __init__(self, url: str, options: StoreOptions, schema: int) -> None:
        self.place = place_of(url, options.postgres.schema)
        self.schema = schema
        self._url = url
        self._options = options
        self.held = 0
        """How many connections are in use."""
        self._counting = threading.Lock()
        self._here = threading.local()
        self._pool: psycopg_pool.ConnectionPool[Connection] = psycopg_pool.ConnectionPool(
            url,
            connection_class=Connection,
            kwargs={"autocommit": True, "context": _Context(), **_parameters(options)},
            min_size=1,
            max_size=options.postgres.pool_size,
            timeout=options.postgres.pool_timeout_s,
            reconnect_timeout=options.postgres.pool_timeout_s,
            configure=configure(options),
            num_workers=1,
            open=True,
        )

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one snapshot of the store: the one that this thread holds, if any. Raises: StoreError."""
        held: Connection | None = getattr(self._here, "snapshot", None)
        if held is not None:
            with errors.translated(self.place):
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
            self._here.snapshot = db
            try:
                yield
            finally:
                self._here.snapshot = None

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with errors.translated(self.place), self._begun(begin, self._options.postgres.pool_timeout_s) as db:
            db.stoppable = True
            try:
                yield db
            finally:
                db.stoppable = False
            several(db, "COMMIT")

    def write(self, work: Callable[[Connection], T], *, within_ms: float | None = None) -> T:
        """Run ``work`` in one transaction, again from its beginning if others were in the way.

        Raises: StoreBusy when that took ``within_ms`` (``max_batch_wait_ms`` if that is less, or nothing is given);
        StoreUnreachable, StoreError. Then nothing was stored, unless the error says that this is not known.
        """
        longest = self._options.max_batch_wait_ms
        until = time.monotonic() + (longest if within_ms is None else min(longest, within_ms)) / 1e3
        with errors.translated(self.place):
            for tried in range(1, TRIES + 1):
                try:
                    return self._write_once(work, until)
                except errors.IN_THE_WAY:
                    if not _left(until) or tried == TRIES:
                        raise
                    time.sleep(random.uniform(0.002, 0.02) * tried)  # noqa: S311 - jitter
        raise AssertionError("the last try returns or raises")

    def _write_once(self, work: Callable[[Connection], T], until: float) -> T:
        wait = max(1, min(self._options.busy_timeout_ms, round(_left(until) * 1e3)))
        patience = min(_left(until), self._options.postgres.pool_timeout_s)
        with self._begun(f"BEGIN; SET LOCAL lock_timeout = {wait}", patience) as db:
            result = work(db)
            try:
                several(db, "COMMIT")
            except _ENDED as error:
                if not _has_ended(error):
                    raise
                raise errors.lost_in_commit(self.place) from error
            return result

    def alone(self, statement: str) -> None:
        """Run what cannot be in a transaction, however long it takes. Raises: StoreError."""
        with errors.translated(self.place), self._connection(self._options.postgres.pool_timeout_s) as db:
            memory = f"SET maintenance_work_mem = '{self._options.postgres.index_memory_mb}MB'"
            several(db, f"SET statement_timeout = 0; SET lock_timeout = {self._options.busy_timeout_ms}; {memory}")
            try:
                several(db, statement)
            finally:
                with suppress(psycopg.Error):
                    several(db, "RESET ALL")
                    configure(self._options)(db)

    def close(self) -> None:
        """Close every idle connection now and every other when its call ends."""
        self._pool.close()

    @contextmanager
    def _begun(self, statement: str, patience: float) -> Iterator[Connection]:
        """A connection in a transaction that is rolled back unless its block ends it.

        A connection that had ended unnoticed is found here: the others are looked at, and it is begun once more.
        """
        with self._connection(patience) as db:
            lost = self._begin(db, statement)
            if not lost:
                with _rolled_back(db):
                    yield db
                return
        self._pool.check()
        with self._connection(patience) as db:
            lost = self._begin(db, statement)
            if lost:
                raise lost
            with _rolled_back(db):
                yield db

    def _begin(self, db: Connection, statement: str) -> psycopg.Error | None:
        """The error of a connection that had ended. Another process may have migrated the store while this one had it
        open: that is asked in the same round trip."""
        try:
            found = several(db, f"{statement}; {_SCHEMA_VERSION}")
        except _ENDED as error:
            if not _has_ended(error):
                raise
            return error
        version = int(found[0]) if found else 0
        if version != self.schema:
            several(db, "ROLLBACK")
            raise errors.newer(self.place, version, self.schema, None)
        return None

    @contextmanager
    def _connection(self, patience: float) -> Iterator[Connection]:
        try:
            db = self._pool.getconn(timeout=max(0.001, patience))
        except psycopg_pool.PoolTimeout as error:
            if self.held >= self._options.postgres.pool_size:
                raise errors.no_connection(self.place, self.held) from error
            raise
        self._count(1)
        try:
            yield db
        finally:
            self._count(-1)
            self._pool.putconn(db)

    def _count(self, change: int) -> None:
        with self._counting:
            self.held += change


@contextmanager
def _rolled_back(db: Connection) -> Iterator[None]:
    try:
        yield
    finally:
        if not db.closed and db.info.transaction_status is not TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                several(db, "ROLLBACK")


def _has_ended(error: psycopg.Error) -> bool:
    return error.sqlstate is None or error.sqlstate.startswith(_ENDINGS)


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
