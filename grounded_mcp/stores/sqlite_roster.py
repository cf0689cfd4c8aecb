"""Tokens of a team's server in their table, and the table of projects.

Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import apsw

from grounded_mcp.stores.roster import Token
from grounded_mcp.stores.sqlite_connection import rows

TOKENS = """
SELECT name, digest, projects, scopes, read_only, metrics, created_at, expires_at, revoked_at
FROM token ORDER BY name"""
SCOPES_OF = """
SELECT item.id, scope FROM item JOIN bucket ON bucket.id = item.bucket
WHERE item.id IN (SELECT value FROM json_each(?))"""
LAST_SEEN = "SELECT key, seen_at FROM project"
UNREGISTER = "DELETE FROM project WHERE key = ?"
ADD = "INSERT OR IGNORE INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
REVOKE = "UPDATE token SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"


def scopes_of(db: apsw.Connection, ids: Sequence[str]) -> Mapping[str, str]:
    return dict(rows(db, SCOPES_OF, (json.dumps(list(ids)),)))


def last_seen(db: apsw.Connection) -> Mapping[str, float]:
    return dict(rows(db, LAST_SEEN, ()))


def unregister(db: apsw.Connection, key: str) -> None:
    db.execute(UNREGISTER, (key,))


def tokens(db: apsw.Connection) -> tuple[Token, ...]:
    return tuple(
        Token(name, digest, tuple(json.loads(projects)), tuple(json.loads(scopes)), bool(read), bool(figures), *times)
        for name, digest, projects, scopes, read, figures, *times in db.execute(TOKENS)
    )


def add(db: apsw.Connection, token: Token) -> bool:
    lists = (json.dumps(token.projects), json.dumps(token.scopes))
    flags = (int(token.read_only), int(token.metrics))
    times = (token.created_at, token.expires_at, token.revoked_at)
    db.execute(ADD, (token.name, token.digest, *lists, *flags, *times))
    return db.changes() > 0


def revoke(db: apsw.Connection, name: str, at: float) -> bool:
    db.execute(REVOKE, (at, name))
    return db.changes() > 0
