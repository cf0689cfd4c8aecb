"""Every store test gets its store here: the contract runs over each engine, each test in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from storing import Worker

from grounded_mcp.stores.base import Store
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer

Open = Callable[..., Any]


def _sqlite(folder: Path, **given: Any) -> Store:
    return SqliteStore(folder / "home" / "memory.db", Analyzer(), **given)


def _swept(folder: Path, **given: Any) -> Store:
    """Without room for vectors in memory: every vector search sweeps the file."""
    return _sqlite(folder, **{"options": StoreOptions(vector_cache_mb=0), **given})


ENGINES = {"sqlite": _sqlite, "sqlite-swept": _swept}


@pytest.fixture
def schema() -> Iterator[str]:
    """A schema of this test's own on the tests' Postgres server."""
    with postgres_server.schema() as name:
        yield name


@pytest.fixture(params=[*sorted(ENGINES), pytest.param("postgres", marks=postgres_server.NEEDED)])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same store once more at every call."""
    opened: list[Store] = []
    with ExitStack() as held:
        if request.param == "postgres":
            name = held.enter_context(postgres_server.schema())
            make = lambda **given: postgres_server.open_store(name, **given)  # noqa: E731
        else:
            make = lambda **given: ENGINES[request.param](tmp_path, **given)  # noqa: E731

        def open_(**given: Any) -> Store:
            opened.append(make(**given))
            return opened[-1]

        yield open_
        for store in opened:
            store.close()


@pytest.fixture
def postgres(schema: str) -> Iterator[Open]:
    """Opens the Postgres store of this test."""
    opened: list[Store] = []

    def open_(**given: Any) -> Store:
        opened.append(postgres_server.open_store(schema, **given))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    return open_store()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a SQLite store of this test may be made."""
    return tmp_path / "home" / "memory.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[Open]:
    """Opens the SQLite store of this test, or one at another path."""
    opened: list[SqliteStore] = []

    def open_(at: Path = path, **given: Any) -> SqliteStore:
        opened.append(SqliteStore(at, Analyzer(), **given))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def worker() -> Iterator[Callable[[], Worker]]:
    """Starts processes that do as they are told; none survives its test."""
    started: list[Worker] = []

    def start() -> Worker:
        started.append(Worker())
        return started[-1]

    yield start
    for each in started:
        each.kill()
