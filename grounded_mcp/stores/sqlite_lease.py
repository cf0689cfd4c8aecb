"""Leases: a lock shared by every process on one store, that a dead process does not keep.

A lease is a row that names its holder. It lapses by the clock, and at once when its holder's process is gone.
Knows nothing about what is done under it.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from grounded_mcp.errors import StoreError
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.sqlite_connection import Database

logger = logging.getLogger(__name__)

PROC = Path("/proc")
_HAS_PROC = (PROC / "self" / "stat").exists()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease: one thread, of one open store, of one process, on one host."""

    host: str
    pid: int
    born: str
    name: str


class Leases:
    """The leases of one open store. A thread that enters a lease it already holds renews it."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._nonce = secrets.token_hex(8)
        self._held = threading.local()

    @contextmanager
    def hold(self, name: str, seconds: float) -> Iterator[bool]:
        """Yields whether the lease is ours; it is given back when the outermost block of this thread ends."""
        me = self._me()
        depths: dict[str, int] = self._held.__dict__
        mine = self._database.write(lambda db: _take(db, name, me, self._clock(), seconds))
        depths[name] = depths.get(name, 0) + mine
        try:
            yield mine
        finally:
            depths[name] -= mine
            if mine and not depths[name]:
                self._release(name, me)

    def _release(self, name: str, me: Holder) -> None:
        try:
            self._database.write(lambda db: db.execute(sql.DROP_LEASE, (name, me.name)))
        except StoreError as error:  # it lapses by itself; what was done under it counts
            logger.warning("the lease %s was not given back: %s", name, error)

    def _me(self) -> Holder:
        pid = os.getpid()
        return Holder(_host(), pid, birth(pid), f"{self._nonce}-{threading.get_ident()}")


def _take(db: apsw.Connection, name: str, me: Holder, now: float, seconds: float) -> bool:
    row = db.execute(sql.GET_LEASE, (name,)).fetchone()
    if row is not None:
        holder, host, pid, born, expires = row
        gone = host == me.host and birth(pid) != born
        if holder != me.name and expires > now and not gone:
            return False
    db.execute(sql.SET_LEASE, (name, me.name, me.host, me.pid, me.born, now + seconds))
    return True


def _host() -> str:
    """The host, and the process namespace within it: a process id means nothing in another one."""
    namespace = ""
    with suppress(OSError):
        namespace = str((PROC / "self" / "ns" / "pid").readlink())
    return f"{socket.gethostname()} {namespace}".strip()


def birth(pid: int) -> str:
    """What tells a process from a later one with the same id; empty when it is gone.

    On Linux the start time, field 22 of proc(5) stat; a zombie is gone. Elsewhere only that it runs.
    """
    if not _HAS_PROC:
        return "running" if _runs(pid) else ""
    try:
        fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _runs(pid: int) -> bool:
    if sys.platform == "win32":  # there os.kill() would end the process
        import ctypes

        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        if handle:
            kernel.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
