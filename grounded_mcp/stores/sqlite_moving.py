"""What a SQLite store can do besides ``stores.base.Store``: be moved, and keep the tokens of a team's server.

The verbs of ``Portable``, ``Located``, ``Census`` and ``Roster``, which ``SqliteStore`` inherits: few callers need
them, and none needs all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import apsw

from grounded_mcp.errors import StoreError
from grounded_mcp.stores import sqlite_portable as portable
from grounded_mcp.stores import sqlite_roster as roster
from grounded_mcp.stores import sqlite_sources as sources
from grounded_mcp.stores import sqlite_write as writing
from grounded_mcp.stores.base import MAX_BATCH, Analyzer
from grounded_mcp.stores.indexing import Tokens
from grounded_mcp.stores.portable import Carried
from grounded_mcp.stores.roster import Token
from grounded_mcp.stores.sqlite_check import mark_derived
from grounded_mcp.stores.sqlite_connection import Database
from grounded_mcp.values import SaveReport, Space


class Moving:
    """``Portable``, ``Located``, ``Census`` and ``Roster`` over a database that is open."""

    _database: Database
    _analyzer: Analyzer
    _clock: Callable[[], float]

    def carry(self, *, after: str = "", limit: int, vectors: bool = False) -> tuple[Carried, ...]:
        return self._database.read(lambda db: portable.carry(db, after, limit, vectors=vectors))

    def adopt(
        self,
        carried: Sequence[Carried],
        *,
        space: Space | None = None,
        checkpoints: Mapping[str, str] | None = None,
        bury: Collection[str] = (),
    ) -> SaveReport:
        if len(carried) > MAX_BATCH:
            raise StoreError(f"{len(carried)} items are too many at once.", f"Adopt at most {MAX_BATCH}.")
        known = self._database.read(lambda db: writing.known_digests(db, [each.record.item.id for each in carried]))
        tokens = Tokens(self._analyzer.index)
        tokens.prepare([each.record for each in carried], known)
        made = portable.pack(carried, space)

        def work(db: apsw.Connection) -> SaveReport:
            mark_derived(db, self._analyzer.fingerprint)
            report = portable.adopt(db, carried, tokens, self._clock(), space, made)
            sources.note_checkpoints(db, checkpoints or {})
            sources.bury(db, bury, self._clock())
            return report

        return self._database.write(work)

    def secrets(self) -> Mapping[str, bytes]:
        return self._database.read(portable.secrets)

    def adopt_secret(self, name: str, value: bytes) -> None:
        self._database.write(lambda db: portable.set_secret(db, name, value))

    def scopes_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        return self._database.read(lambda db: roster.scopes_of(db, ids))

    def last_seen(self) -> Mapping[str, float]:
        return self._database.read(roster.last_seen)

    def unregister(self, key: str) -> None:
        self._database.write(lambda db: roster.unregister(db, key))

    def tokens(self) -> tuple[Token, ...]:
        return self._database.read(roster.tokens)

    def add_token(self, token: Token) -> bool:
        return self._database.write(lambda db: roster.add(db, token))

    def revoke_token(self, name: str, at: float) -> bool:
        return self._database.write(lambda db: roster.revoke(db, name, at))
