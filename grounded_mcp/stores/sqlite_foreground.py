"""Reading what a brief shows, in few statements and without the rest of the store.

Functions over a connection inside a transaction that someone else opened. Imports next to nothing: a hook runs this at
every start of an agent. Knows nothing about budgets.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import apsw

from grounded_mcp.foreground import Foreground, Most, Note, Weights

_NOTE = """item.id, bucket.kind, bucket.scope, item.title, {text}, item.key, item.importance, item.pinned,
    item.updated_at, item.attrs, EXISTS (
        SELECT 1 FROM conflict JOIN item AS other ON other.num = conflict.other
        WHERE conflict.item = item.num AND other.state <> 'superseded')
FROM item JOIN bucket ON bucket.id = item.bucket"""
_WHOLE = """coalesce(item.body, (
        SELECT group_concat(body, '')
        FROM (SELECT body FROM passage WHERE passage.item = item.num ORDER BY seq, passage.id)))"""
_BUCKETS = "(SELECT id FROM bucket WHERE kind = :kind AND scope IN (SELECT value FROM json_each(:scopes)))"

FACTS = f"""
SELECT {_NOTE.format(text="coalesce(item.body, item.title)")}
WHERE item.num IN (
    SELECT num FROM item WHERE bucket IN {_BUCKETS} AND state = 'active'
    ORDER BY pinned DESC, importance DESC, updated_at DESC, id LIMIT :k)
ORDER BY pinned DESC, importance DESC, item.updated_at DESC, item.id"""  # noqa: S608
LATEST = f"""
SELECT {_NOTE.format(text="item.title")}
WHERE item.num IN (
    SELECT num FROM item WHERE bucket IN {_BUCKETS} AND passages > 0 ORDER BY updated_at DESC, id LIMIT :k)
ORDER BY item.updated_at DESC, item.id"""  # noqa: S608
_WEIGHT = "total(CASE kind WHEN 'verified outcome' THEN :verified WHEN 'stated' THEN :stated ELSE :diagnostic END)"
_PROOF = "max(at) FILTER (WHERE {} AND kind = 'verified outcome')"
SCRIPTS = f"""
WITH weighed AS (
    SELECT item AS num, max(at) AS newest,
        {_WEIGHT} FILTER (WHERE supports) AS s, {_WEIGHT} FILTER (WHERE NOT supports) AS c,
        {_PROOF.format("supports")} AS worked, {_PROOF.format("NOT supports")} AS failed
    FROM evidence
    WHERE item IN (SELECT num FROM item WHERE state = 'active' AND bucket IN {_BUCKETS})
    GROUP BY item
), proven AS (
    SELECT num, round(s / (s + c + 1), 9) AS score, newest FROM weighed
    WHERE worked IS NOT NULL AND c < s AND (failed IS NULL OR failed < worked)
    ORDER BY score DESC, newest DESC, num LIMIT :k
)
SELECT {_NOTE.format(text="item.title")} JOIN proven ON proven.num = item.num
ORDER BY proven.score DESC, proven.newest DESC, item.id"""  # noqa: S608
COUNTS = """
SELECT kind, sum(items) FROM (
    SELECT kind, (SELECT count(*) FROM item INDEXED BY item_span WHERE bucket = bucket.id AND passages > 0) AS items
    FROM bucket WHERE scope IN (SELECT value FROM json_each(iif(kind = 'fact', :facts, :others))))
GROUP BY kind"""
NAMING = f"""
WITH found AS (
    SELECT DISTINCT entity, passage.item AS num
    FROM json_each(:entities) JOIN mention ON entity = value JOIN bucket ON bucket.id = mention.bucket
        JOIN passage ON passage.id = mention.passage
    WHERE bucket.kind IN ('fact', 'learning', 'script')
        AND bucket.scope IN (SELECT value FROM json_each(iif(bucket.kind = 'fact', :facts, :others)))
), telling AS (
    SELECT num, count(*) AS times FROM found
    WHERE entity IN (SELECT entity FROM found GROUP BY entity HAVING count(*) <= :common) GROUP BY num
)
SELECT {_NOTE.format(text=_WHOLE)} JOIN telling ON telling.num = item.num
WHERE item.state = 'active'
ORDER BY times DESC, pinned DESC, importance DESC, item.updated_at DESC, item.id LIMIT :k"""  # noqa: S608


def foreground(
    db: apsw.Connection, facts: Collection[str], others: Collection[str], most: Most, weights: Weights
) -> Foreground:
    """See ``foreground.Shelf``."""
    ours, theirs = (json.dumps(sorted(scopes)) for scopes in (facts, others))
    about_facts = {"kind": "fact", "scopes": ours}

    def latest(kind: str, k: int) -> tuple[Note, ...]:
        return tuple(_notes(db, LATEST, {"kind": kind, "scopes": theirs, "k": k}))

    proof = {"kind": "script", "scopes": theirs, "k": most.scripts, **weights._asdict()}
    return Foreground(
        facts=tuple(_notes(db, FACTS, {**about_facts, "k": most.facts})),
        sessions=latest("session", most.sessions),
        scripts=tuple(_notes(db, SCRIPTS, proof)),
        learnings=latest("learning", most.learnings),
        counts=dict(list(db.execute(COUNTS, {"facts": ours, "others": theirs}))),
    )


def naming(
    db: apsw.Connection, entities: Sequence[int], facts: Collection[str], others: Collection[str], common: int, k: int
) -> tuple[Note, ...]:
    """See ``foreground.Shelf``."""
    scopes = {"facts": json.dumps(sorted(facts)), "others": json.dumps(sorted(others))}
    return tuple(_notes(db, NAMING, {"entities": json.dumps(list(entities)), **scopes, "common": common, "k": k}))


def _notes(db: apsw.Connection, statement: str, bindings: dict[str, Any]) -> Iterator[Note]:
    for id, kind, scope, title, text, key, importance, pinned, updated_at, attrs, disputed in list(
        db.execute(statement, bindings)
    ):
        yield Note(
            *(id, kind, scope, title, text or title, key, importance, bool(pinned), updated_at),
            *(json.loads(attrs), bool(disputed)),
        )
