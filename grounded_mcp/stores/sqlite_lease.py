"""Leases: a lock shared by every process on one store, that a dead process does not keep.

A lease is a row that names its holder. It lapses by the clock, and at once when its holder's process is gone.
Knows nothing about what is done under it.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from grounded_mcp.errors import StoreError
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.holders import Holder, birth, this_thread
from grounded_mcp.stores.sqlite_connection import Database

logger = logging.getLogger(__name__)


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
        me = this_thread(self._nonce)
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


def _take(db: apsw.Connection, name: str, me: Holder, now: float, seconds: float) -> bool:
    row = db.execute(sql.GET_LEASE, (name,)).fetchone()
    if row is not None:
        holder, host, pid, born, expires = row
        gone = host == me.host and birth(pid) != born
        if holder != me.name and expires > now and not gone:
            return False
    db.execute(sql.SET_LEASE, (name, me.name, me.host, me.pid, me.born, now + seconds))
    return True
