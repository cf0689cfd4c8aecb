"""Reading what a brief shows, in few statements and without the rest of the store.

Functions over a connection inside a transaction that someone else opened. Knows nothing about budgets.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from grounded_mcp.foreground import Foreground, Most, Note, Weights
from grounded_mcp.stores.postgres_connection import Connection, rows
from grounded_mcp.stores.postgres_sql import WEIGHT

_NOTE = """item.id, bucket.kind, bucket.scope, item.title, {text}, item.key, item.importance, item.pinned,
    item.updated_at, item.attrs, EXISTS (
        SELECT 1 FROM conflict JOIN item AS other ON other.num = conflict.other
        WHERE conflict.item = item.num AND other.state <> 'superseded')
FROM item JOIN bucket ON bucket.id = item.bucket"""
_WHOLE = """coalesce(item.body, (
        SELECT string_agg(body, '' ORDER BY seq, passage.id) FROM passage WHERE passage.item = item.num), '')"""
_IN_BUCKETS = "bucket.kind = %(kind)s AND bucket.scope = ANY(%(scopes)s::text[])"
_BUCKETS = "(SELECT id FROM bucket WHERE kind = %(kind)s AND scope = ANY(%(scopes)s::text[]))"

FACTS = f"""
SELECT {_NOTE.format(text="coalesce(item.body, item.title)")}
WHERE {_IN_BUCKETS} AND state = 'active'
ORDER BY pinned DESC, importance DESC NULLS LAST, item.updated_at DESC, item.id LIMIT %(k)s"""
LATEST = f"""
SELECT {_NOTE.format(text="item.title")}
WHERE {_IN_BUCKETS} AND passages > 0
ORDER BY item.updated_at DESC, item.id LIMIT %(k)s"""
_PROOF = "max(at) FILTER (WHERE {} AND kind = 'verified outcome')"
SCRIPTS = f"""
WITH weighed AS (
    SELECT item AS num, max(at) AS newest,
        {WEIGHT.format("supports")} AS s, {WEIGHT.format("NOT supports")} AS c,
        {_PROOF.format("supports")} AS worked, {_PROOF.format("NOT supports")} AS failed
    FROM evidence
    WHERE item IN (SELECT num FROM item WHERE state = 'active' AND bucket IN {_BUCKETS})
    GROUP BY item
), proven AS (
    SELECT num, round(s / (s + c + 1) * 1e9::double precision) AS score, newest FROM weighed
    WHERE worked IS NOT NULL AND c < s AND (failed IS NULL OR failed < worked)
    ORDER BY score DESC, newest DESC, num LIMIT %(k)s
)
SELECT {_NOTE.format(text="item.title")} JOIN proven ON proven.num = item.num
ORDER BY proven.score DESC, proven.newest DESC, item.id"""  # noqa: S608
_OURS = "bucket.scope = ANY(CASE WHEN bucket.kind = 'fact' THEN %(facts)s::text[] ELSE %(others)s::text[] END)"
COUNTS = f"""
SELECT kind, count(item.num) FROM bucket LEFT JOIN item ON item.bucket = bucket.id AND passages > 0
WHERE {_OURS} GROUP BY kind"""  # noqa: S608
NAMING = f"""
WITH found AS (
    SELECT DISTINCT entity, passage.item AS num
    FROM unnest(%(entities)s::bigint[]) AS asked (value) JOIN mention ON entity = value
        JOIN bucket ON bucket.id = mention.bucket JOIN passage ON passage.id = mention.passage
    WHERE bucket.kind IN ('fact', 'learning', 'script') AND {_OURS}
), telling AS (
    SELECT num, count(*) AS times FROM found
    WHERE entity IN (SELECT entity FROM found GROUP BY entity HAVING count(*) <= %(common)s) GROUP BY num
)
SELECT {_NOTE.format(text=_WHOLE)} JOIN telling ON telling.num = item.num
WHERE item.state = 'active'
ORDER BY times DESC, pinned DESC, importance DESC NULLS LAST, item.updated_at DESC, item.id
LIMIT %(k)s"""  # noqa: S608


def foreground(
    db: Connection, facts: Collection[str], others: Collection[str], most: Most, weights: Weights
) -> Foreground:
    """See ``foreground.Shelf``."""
    ours, theirs = sorted(facts), sorted(others)

    def latest(kind: str, k: int) -> tuple[Note, ...]:
        return tuple(_notes(db, LATEST, {"kind": kind, "scopes": theirs, "k": k}))

    proof = {"kind": "script", "scopes": theirs, "k": most.scripts, **weights._asdict()}
    return Foreground(
        facts=tuple(_notes(db, FACTS, {"kind": "fact", "scopes": ours, "k": most.facts})),
        sessions=latest("session", most.sessions),
        scripts=tuple(_notes(db, SCRIPTS, proof)),
        learnings=latest("learning", most.learnings),
        counts=dict(rows(db, COUNTS, {"facts": ours, "others": theirs})),
    )


def naming(
    db: Connection, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
) -> tuple[Note, ...]:
    """See ``foreground.Shelf``."""
    asked = {"entities": list(entities), "facts": sorted(facts), "others": sorted(others), "common": common, "k": k}
    return tuple(_notes(db, NAMING, asked))


def _notes(db: Connection, statement: str, asked: Mapping[str, Any]) -> Iterator[Note]:
    for id, kind, scope, title, text, key, importance, pinned, updated_at, attrs, disputed in rows(
        db, statement, asked
    ):
        yield Note(
            *(id, kind, scope, title, text or title, key, importance, pinned, updated_at),
            *(json.loads(attrs), disputed),
        )
