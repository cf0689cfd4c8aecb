"""Tokens of a team's server in their table, and the table of projects.

Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from grounded_mcp.stores.postgres_connection import Connection, rows, run
from grounded_mcp.stores.roster import Token

TOKENS = """
SELECT name, digest, projects, scopes, read_only, metrics, created_at, expires_at, revoked_at
FROM token ORDER BY name"""
SCOPES_OF = """
SELECT item.id, scope FROM item JOIN bucket ON bucket.id = item.bucket WHERE item.id = ANY(%s::text[])"""
LAST_SEEN = "SELECT key, seen_at FROM project"
UNREGISTER = "DELETE FROM project WHERE key = %s"
ADD_TOKEN = """
INSERT INTO token (name, digest, projects, scopes, read_only, metrics, created_at, expires_at, revoked_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""  # noqa: S105 - a statement
REVOKE_TOKEN = "UPDATE token SET revoked_at = %s WHERE name = %s AND revoked_at IS NULL"  # noqa: S105 - a statement


def scopes_of(db: Connection, ids: Sequence[str]) -> Mapping[str, str]:
    return dict(rows(db, SCOPES_OF, (list(ids),)))


def last_seen(db: Connection) -> Mapping[str, float]:
    return dict(rows(db, LAST_SEEN))


def unregister(db: Connection, key: str) -> None:
    run(db, UNREGISTER, (key,))


def tokens(db: Connection) -> tuple[Token, ...]:
    return tuple(
        Token(name, digest, tuple(json.loads(projects)), tuple(json.loads(scopes)), *rest)
        for name, digest, projects, scopes, *rest in rows(db, TOKENS)
    )


def add(db: Connection, token: Token) -> bool:
    lists = (json.dumps(token.projects), json.dumps(token.scopes))
    times = (token.created_at, token.expires_at, token.revoked_at)
    return run(db, ADD_TOKEN, (token.name, token.digest, *lists, token.read_only, token.metrics, *times)) > 0


def revoke(db: Connection, name: str, at: float) -> bool:
    return run(db, REVOKE_TOKEN, (at, name)) > 0
