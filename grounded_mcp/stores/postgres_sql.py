"""Every statement of the Postgres store but its schema (``migrations/postgres``), by the verb that uses it.

Lists of values are passed as arrays, so that no statement is put together from pieces. What is known at a search only,
whether it is bounded in time, picks one of two statements: a plan that has no use for the bound is a better one.
"""

from __future__ import annotations

# --- writing ----------------------------------------------------------------------------------------------

ITEM_FIELDS = (
    "id, bucket, key, title, body, state, origin, importance, pinned, created_at, updated_at, content_hash, attrs, "
    "passages, size"
)
_ITEM_VALUES = "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s"

# Every verb takes its locks in one order, so that two of them never wait for each other: names by their digests,
# whether or not something has them yet, and then items by their numbers.
LOCK_NAMES = "SELECT pg_advisory_xact_lock(%s::integer, name) FROM unnest(%s::integer[]) AS given (name)"
LOCK_ITEMS = """
SELECT num FROM item
WHERE id = ANY(%(ids)s::text[]) OR num IN (SELECT item FROM evidence WHERE session = ANY(%(sessions)s::text[]))
    OR num IN (
        SELECT other.num FROM unnest(%(buckets)s::integer[], %(keys)s::text[]) AS taken (bucket, key)
        JOIN item AS other ON other.bucket = taken.bucket AND other.key = taken.key AND other.state = 'active')
ORDER BY num FOR UPDATE"""
LOCK_OWNERS = """
SELECT num FROM item WHERE num IN (SELECT item FROM passage WHERE id = ANY(%s::bigint[])) ORDER BY num FOR UPDATE"""
ITEM_NUM = "SELECT num, state FROM item WHERE id = %s"
ITEM_ROW = f"SELECT num, {ITEM_FIELDS} FROM item WHERE id = %s"  # noqa: S608
RIVALS = "SELECT num, id FROM item WHERE bucket = %s AND key = %s AND state = 'active' AND id <> %s ORDER BY num"
INSERT_ITEM = f"INSERT INTO item ({ITEM_FIELDS}) VALUES ({_ITEM_VALUES}) RETURNING num"  # noqa: S608
UPDATE_ITEM = f"""
UPDATE item SET ({ITEM_FIELDS}) = ROW ({_ITEM_VALUES}),
    superseded_by = CASE WHEN %s THEN superseded_by END
WHERE num = %s"""  # noqa: S608
RETIRE_ITEM = """
UPDATE item SET state = 'superseded', superseded_by = %(by)s, state_at = %(at)s, passages = 0,
    body = coalesce(body, (SELECT string_agg(body, '' ORDER BY seq, id) FROM passage WHERE item = %(num)s))
WHERE num = %(num)s"""
MARK_ITEM = "UPDATE item SET state = %s, state_at = %s WHERE num = %s"
NUMS = "SELECT num FROM item WHERE id = ANY(%s::text[]) ORDER BY num"
DELETE_ITEMS = "DELETE FROM item WHERE num = ANY(%s::bigint[])"

ADD_BUCKETS = """
INSERT INTO bucket (scope, kind) SELECT * FROM unnest(%s::text[], %s::text[]) AS given (scope, kind)
ORDER BY scope COLLATE "C", kind COLLATE "C" ON CONFLICT DO NOTHING"""
FIND_BUCKETS = """
SELECT scope, kind, id FROM bucket
WHERE (scope, kind) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"""

ITEM_PASSAGES = "SELECT id, digest, seq, start_line, end_line, at FROM passage WHERE item = %s ORDER BY seq, id"
KNOWN_DIGESTS = "SELECT digest FROM passage JOIN item ON item.num = passage.item WHERE item.id = ANY(%s::text[])"
NEXT_IDS = "SELECT nextval(pg_get_serial_sequence('passage', 'id')) FROM generate_series(1, %s)"
INSERT_PASSAGES = """
INSERT INTO passage (id, item, bucket, seq, start_line, end_line, at, digest, heading, body, tokens)
OVERRIDING SYSTEM VALUE
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::double precision[], %s::bytea[], %s::text[], %s::text[], %s::text[])"""
PLACE_PASSAGE = "UPDATE passage SET seq = %s, start_line = %s, end_line = %s, at = %s WHERE id = %s"
HELD_TOKENS = "SELECT id, bucket, tokens FROM passage WHERE item = ANY(%s::bigint[]) ORDER BY id"
SOME_TOKENS = "SELECT id, bucket, tokens FROM passage WHERE id = ANY(%s::bigint[]) ORDER BY id"
MOVE_PASSAGES = "UPDATE passage SET bucket = %s WHERE item = %s"
MOVE_VECTORS = "UPDATE embedded SET bucket = %s WHERE passage = ANY(%s::bigint[])"
MOVE_MENTIONS = "UPDATE mention SET bucket = %s WHERE passage = ANY(%s::bigint[])"
DELETE_PASSAGES = "DELETE FROM passage WHERE id = ANY(%s::bigint[])"

REGISTER = """
INSERT INTO project (key, name, reason, root, branch, worktree, seen_at) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (key) DO UPDATE SET name = excluded.name, reason = excluded.reason, root = excluded.root,
    branch = excluded.branch, worktree = excluded.worktree, seen_at = excluded.seen_at"""
UNREGISTER = "DELETE FROM project WHERE key = %s"
DROP_EMPTY_BUCKETS = "DELETE FROM bucket WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.bucket = bucket.id)"

# --- the inverted index -----------------------------------------------------------------------------------

ADD_POSTINGS = """
INSERT INTO posting (term, bucket, passage, times, length)
SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::bigint[], %s::integer[], %s::integer[])
    AS given (term, bucket, passage, times, length) ORDER BY term, bucket, passage"""
DROP_POSTINGS = """
DELETE FROM posting USING unnest(%s::bigint[], %s::integer[], %s::bigint[]) AS gone (term, bucket, passage)
WHERE posting.term = gone.term AND posting.bucket = gone.bucket AND posting.passage = gone.passage"""
# Rows that many writers change are changed last and in one order: whoever comes second waits, and for the commit only.
COUNT_TERMS = """
INSERT INTO term (term, passages)
SELECT * FROM unnest(%s::bigint[], %s::bigint[]) AS given (term, passages) ORDER BY term
ON CONFLICT (term) DO UPDATE SET passages = term.passages + excluded.passages"""
DROP_TERMS = "DELETE FROM term WHERE term = ANY(%s::bigint[]) AND passages = 0"
COUNT_CORPUS = "UPDATE corpus SET passages = passages + %s, tokens = tokens + %s"

# --- reading ----------------------------------------------------------------------------------------------

ITEM_COLUMNS = """item.id, bucket.kind, bucket.scope, item.title, item.key, item.body, item.state, item.origin,
    item.importance, item.pinned, item.created_at, item.updated_at, item.content_hash, item.attrs"""
_FROM_ITEM = "FROM item JOIN bucket ON bucket.id = item.bucket"

ITEM = f"SELECT {ITEM_COLUMNS} {_FROM_ITEM} WHERE item.id = %s"
PASSAGES = """
SELECT seq, passage.body, heading, start_line, end_line, at FROM passage JOIN item ON item.num = passage.item
WHERE item.id = %s ORDER BY seq, passage.id"""
IDS = "SELECT id FROM item WHERE id > %s ORDER BY id LIMIT %s"
FIND = f"""
SELECT {ITEM_COLUMNS} {_FROM_ITEM}
WHERE bucket.kind = %s AND bucket.scope = %s AND item.key = %s AND item.state = 'active'"""
HISTORY = f"""
WITH RECURSIVE old (id) AS (
    SELECT id FROM item WHERE superseded_by = %(id)s
    UNION SELECT item.id FROM item JOIN old ON item.superseded_by = old.id
)
SELECT {ITEM_COLUMNS} {_FROM_ITEM}
WHERE item.id IN (SELECT id FROM old) AND item.id <> %(id)s AND item.state = 'superseded'
ORDER BY item.state_at DESC NULLS LAST, item.num DESC LIMIT %(k)s"""  # noqa: S608
SUCCESSOR = f"""
WITH RECURSIVE later (id) AS (
    SELECT superseded_by FROM item WHERE id = %s AND state = 'superseded'
    UNION SELECT item.superseded_by FROM item JOIN later USING (id) WHERE item.state = 'superseded'
)
SELECT {ITEM_COLUMNS} {_FROM_ITEM} WHERE item.id IN (SELECT id FROM later) AND item.state <> 'superseded'"""  # noqa: S608
KNOWN = """
SELECT item.id, item.key, item.content_hash, item.state, item.created_at, item.updated_at, item.attrs
FROM item JOIN bucket ON bucket.id = item.bucket
WHERE bucket.kind = %s AND bucket.scope = %s AND item.key IS NOT NULL AND item.state <> 'superseded'
ORDER BY item.key, item.state = 'active', item.num"""
RECENT = f"""
SELECT {ITEM_COLUMNS} {_FROM_ITEM}
WHERE item.bucket = ANY(%(buckets)s::integer[]) AND passages > 0
    AND (NOT %(windowed)s OR updated_at BETWEEN %(since)s AND %(until)s)
ORDER BY item.updated_at DESC, item.id LIMIT %(k)s"""
FETCH = f"""
SELECT passage.id, passage.seq, passage.body, passage.heading, passage.start_line, passage.end_line, passage.at,
    passage.tokens, item.passages, item.size, {ITEM_COLUMNS}
FROM passage JOIN item ON item.num = passage.item JOIN bucket ON bucket.id = item.bucket
WHERE passage.id = ANY(%s::bigint[])"""  # noqa: S608
SCOPES = "SELECT DISTINCT scope FROM bucket WHERE EXISTS (SELECT 1 FROM item WHERE item.bucket = bucket.id)"
PROJECTS = "SELECT key, name, reason, root, branch, worktree FROM project ORDER BY key"

_OF_SCOPES = "(%(any)s OR scope = ANY(%(scopes)s::text[]))"
COUNT_ITEMS = f"""
SELECT kind, count(*) FROM item JOIN bucket ON bucket.id = item.bucket WHERE {_OF_SCOPES}
GROUP BY kind ORDER BY kind"""  # noqa: S608
_ADMITTED = """bucket IN (
    SELECT id FROM bucket
    WHERE coalesce(scope = ANY (CASE kind WHEN 'fact' THEN %(facts)s::text[] ELSE %(others)s::text[] END), true))"""
COUNT_PENDING = f"SELECT count(*) FROM passage WHERE vector_state = 'pending' AND {_ADMITTED}"  # noqa: S608
SUM_PASSAGES = f"SELECT coalesce(sum(passages), 0) FROM item WHERE {_ADMITTED}"  # noqa: S608
COUNT_PASSAGES = f"""
SELECT vector_state, count(*) FROM passage JOIN bucket ON bucket.id = passage.bucket WHERE {_OF_SCOPES}
GROUP BY vector_state"""  # noqa: S608
SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"""
VERSIONS = """
SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector')"""

GET_META = "SELECT value FROM meta WHERE name = %s"
SET_META = """
INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
INIT_META = "INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT DO NOTHING"
DROP_META = "DELETE FROM meta WHERE name = %s"
GET_SECRET = "SELECT value FROM secret WHERE name = %s"  # noqa: S105 - a statement
MAKE_SECRET = "INSERT INTO secret (name, value) VALUES (%s, %s) ON CONFLICT DO NOTHING"  # noqa: S105 - a statement

# --- where it came from -----------------------------------------------------------------------------------

CHECKPOINTS = "SELECT source, state FROM checkpoint WHERE starts_with(source, %s)"
SET_CHECKPOINT = """
INSERT INTO checkpoint (source, state) VALUES (%s, %s) ON CONFLICT (source) DO UPDATE SET state = excluded.state"""
EVIDENCE = """
SELECT session, place, supports, kind, note, at FROM evidence JOIN item ON item.num = evidence.item
WHERE item.id = %s ORDER BY at, session, place"""
TALLIES = """
SELECT item.id, evidence.kind, supports, count(*), max(at)
FROM item JOIN evidence ON evidence.item = item.num WHERE item.id = ANY(%s::text[])
GROUP BY item.num, evidence.kind, supports ORDER BY item.num, evidence.kind, supports"""
WEIGHT = """coalesce(sum(CASE kind WHEN 'verified outcome' THEN %(verified)s::double precision
    WHEN 'stated' THEN %(stated)s::double precision ELSE %(diagnostic)s::double precision END)
    FILTER (WHERE {}), 0.0)"""
PROVEN = f"""
WITH weighed AS (
    SELECT item, max(at) AS newest, {WEIGHT.format("supports")} AS s, {WEIGHT.format("NOT supports")} AS c
    FROM evidence WHERE item IN (
        SELECT num FROM item WHERE state = 'active' AND bucket = ANY(%(buckets)s::integer[]))
    GROUP BY item HAVING bool_or(supports AND kind = 'verified outcome')
)
SELECT id, count(*) OVER () FROM weighed JOIN item ON item.num = weighed.item
ORDER BY round(s / (s + c + 1) * 1e9::double precision) DESC, newest DESC, id LIMIT %(k)s"""  # noqa: S608
ADD_EVIDENCE = """
INSERT INTO evidence (item, session, place, supports, kind, note, at)
SELECT num, %s, %s, %s, %s, %s, %s FROM item WHERE id = %s
ON CONFLICT (item, session, place) DO UPDATE SET supports = excluded.supports, kind = excluded.kind,
    note = excluded.note, at = excluded.at"""
EVIDENCE_ITEMS = "SELECT DISTINCT item FROM evidence WHERE session = %s AND place >= %s"
RETRACT_EVIDENCE = "DELETE FROM evidence WHERE session = %s AND place >= %s"
UNFOUNDED = """
SELECT num FROM item WHERE num = ANY(%s::bigint[]) AND origin = 'derived'
    AND bucket IN (SELECT id FROM bucket WHERE kind = 'script')
    AND NOT EXISTS (SELECT 1 FROM evidence WHERE evidence.item = item.num) ORDER BY num"""
ADD_CONFLICT = """
INSERT INTO conflict (item, other)
SELECT one.num, two.num FROM item AS one, item AS two WHERE one.id = %s AND two.id = %s AND one.num <> two.num
ON CONFLICT DO NOTHING"""
CONFLICTS = f"""
SELECT one.id, {ITEM_COLUMNS} FROM item AS one JOIN conflict ON conflict.item = one.num
JOIN item ON item.num = conflict.other JOIN bucket ON bucket.id = item.bucket
WHERE one.id = ANY(%s::text[]) AND one.state <> 'superseded' AND item.state <> 'superseded'
ORDER BY one.id, item.updated_at DESC, item.id"""  # noqa: S608
BURY = "INSERT INTO tombstone (digest, at) VALUES (%s, %s) ON CONFLICT DO NOTHING"
BURIED = "SELECT digest FROM tombstone"

# --- searching --------------------------------------------------------------------------------------------

BUCKETS = """
SELECT id FROM bucket WHERE kind = ANY(%(kinds)s::text[]) AND (%(any)s OR scope = ANY(%(scopes)s::text[]))
ORDER BY id"""

_WITHIN = """AND {} IN (
        SELECT passage.id FROM item JOIN passage ON passage.item = item.num
        WHERE item.updated_at BETWEEN %(since)s AND %(until)s)"""


def _both(statement: str, passage: str) -> tuple[str, str]:
    """A search without a bound in time, and with one."""
    return statement.replace("/*within*/", ""), statement.replace("/*within*/", _WITHIN.format(passage))


STATISTICS = """
SELECT passages, tokens, ARRAY(
    SELECT coalesce(held.passages, 0) FROM unnest(%s::bigint[]) WITH ORDINALITY AS asked (term, at)
    LEFT JOIN term AS held USING (term) ORDER BY at)
FROM corpus"""
LEXICAL = _both(
    """
SELECT passage, round(score * 1e9::double precision) / 1e9::double precision FROM (
    SELECT passage, sum(idf * (times * (%(k1)s::double precision + 1) / (times + %(k1)s::double precision * (
        1 - %(b)s::double precision + %(b)s::double precision * length / %(average)s::double precision)))) AS score
    FROM unnest(%(terms)s::bigint[], %(idf)s::double precision[]) AS asked (term, idf) JOIN posting USING (term)
    WHERE bucket = ANY(%(buckets)s::integer[]) /*within*/
    GROUP BY passage) AS scored
ORDER BY round(score * 1e9::double precision) DESC, passage LIMIT %(k)s""",
    "passage",
)

# As far as the k-th and some more: near ties are settled by the exact similarity, whose last digits are ours. Vectors
# are read of those alone: beside the distance each of them would go through the sorting.
_NEAR = """
SELECT passage, vector_send(embedding), distance FROM ({}) AS near JOIN embedded USING (passage)
ORDER BY distance, passage"""
NEAREST = _both(
    _NEAR.format("""
    SELECT passage, embedding <=> %(query)s::vector AS distance FROM embedded
    WHERE bucket = ANY(%(buckets)s::integer[]) /*within*/ ORDER BY distance, passage LIMIT %(k)s"""),
    "passage",
)
NEARER = _both(
    """
SELECT passage, vector_send(embedding), 0.0::double precision FROM embedded
WHERE bucket = ANY(%(buckets)s::integer[]) /*within*/ AND embedding <=> %(query)s::vector <= %(distance)s""",
    "passage",
)
INDEXED = _NEAR.format("""
    SELECT passage, embedding::vector({dimensions}) <=> %(query)s::vector({dimensions}) AS distance
    FROM embedded WHERE bucket = ANY(%(buckets)s::integer[]) ORDER BY distance LIMIT %(k)s""")
ADMITTED = """
SELECT count(*) FROM (SELECT 1 FROM embedded WHERE bucket = ANY(%(buckets)s::integer[]) LIMIT %(most)s) AS admitted"""
COUNT_VECTORS = "SELECT count(*) FROM (SELECT 1 FROM embedded LIMIT %s) AS counted"
HAS_INDEX = """
SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('embedded_hnsw') AND indisvalid"""
MAKE_INDEX = """
CREATE INDEX CONCURRENTLY embedded_hnsw ON embedded
USING hnsw ((embedding::vector({dimensions})) vector_cosine_ops)"""
DROP_UNFINISHED = "DROP INDEX CONCURRENTLY IF EXISTS embedded_hnsw"
DROP_INDEX = "DROP INDEX IF EXISTS embedded_hnsw"

# Items by how much of them lies in a time window, then by how far they are from it. What has passages with times of
# their own is where those are; anything else is where it began and where it ended.
_SPANS = """
SELECT num, least(created_at, updated_at) AS began, updated_at AS ended,
    EXISTS (SELECT 1 FROM passage WHERE item = num AND at IS NOT NULL) AS timed
FROM item
WHERE bucket = ANY(%(buckets)s::integer[]) AND passages > 0
    AND updated_at >= %(since)s::double precision - %(reach)s::double precision
    AND least(created_at, updated_at) <= %(until)s::double precision + %(reach)s::double precision
    AND (NOT %(windowed)s OR updated_at BETWEEN %(floor)s AND %(ceiling)s)"""
_COUNTED = f"""
SELECT *, CASE WHEN timed
    THEN (SELECT count(DISTINCT at) FROM passage WHERE item = num AND at BETWEEN %(since)s AND %(until)s)
    ELSE (began BETWEEN %(since)s AND %(until)s OR ended BETWEEN %(since)s AND %(until)s)::integer END AS inside
FROM ({_SPANS}) AS spans"""  # noqa: S608
TIMED_INSIDE = f"""
SELECT num, inside, 0.0::double precision FROM ({_COUNTED}) AS counted WHERE inside > 0
ORDER BY inside DESC, num LIMIT %(k)s"""  # noqa: S608
_FAR = "'infinity'::double precision"
TIMED_NEAR = f"""
WITH placed AS MATERIALIZED (
    SELECT num, inside, CASE WHEN inside > 0 THEN 0.0 WHEN timed
        THEN least(coalesce(%(since)s - (SELECT max(at) FROM passage WHERE item = num AND at < %(since)s), {_FAR}),
            coalesce((SELECT min(at) FROM passage WHERE item = num AND at > %(until)s) - %(until)s, {_FAR}))
        ELSE greatest(%(since)s - ended, began - %(until)s, 0.0) END AS gap
    FROM ({_COUNTED}) AS counted
)
SELECT num, inside, gap FROM placed WHERE gap <= %(reach)s ORDER BY inside DESC, gap, num LIMIT %(k)s"""  # noqa: S608
# An exchange stands for itself by its first passage, what has no times by its very first one.
TIMED_PASSAGES = """
SELECT item, at, min(id) FROM passage
WHERE item = ANY(%(items)s::bigint[]) AND at BETWEEN %(since)s::double precision - %(reach)s::double precision
    AND %(until)s::double precision + %(reach)s::double precision GROUP BY item, at
UNION ALL
SELECT num, NULL, (SELECT id FROM passage WHERE item = num ORDER BY seq, id LIMIT 1)
FROM unnest(%(items)s::bigint[]) AS given (num)
WHERE NOT EXISTS (SELECT 1 FROM passage WHERE item = num AND at IS NOT NULL)
ORDER BY 1, 2, 3"""

# --- entities ---------------------------------------------------------------------------------------------

ADD_MENTIONS = """
INSERT INTO mention (entity, bucket, passage)
SELECT entity, %s, passage FROM unnest(%s::bigint[], %s::bigint[]) AS given (entity, passage) ON CONFLICT DO NOTHING"""
MENTIONS = _both(
    """
SELECT entity, ARRAY(
    SELECT passage FROM mention
    WHERE mention.entity = asked.entity AND bucket = ANY(%(buckets)s::integer[]) /*within*/ LIMIT %(k)s)
FROM unnest(%(entities)s::bigint[]) AS asked (entity)""",
    "passage",
)
ENTITIES_OF = "SELECT passage, entity FROM mention WHERE passage = ANY(%s::bigint[]) ORDER BY passage, entity"
ALL_MENTIONED = """
SELECT id, bucket, body, ARRAY(SELECT entity FROM mention WHERE passage = id ORDER BY entity)
FROM passage WHERE id > %s ORDER BY id LIMIT %s"""
COUNT_STRAY_MENTIONS = """
SELECT count(*) FROM mention WHERE NOT EXISTS (
    SELECT 1 FROM passage WHERE passage.id = mention.passage AND passage.bucket = mention.bucket)"""

# --- vectors ----------------------------------------------------------------------------------------------

PENDING = """
SELECT passage.id, item.title, passage.heading, passage.body FROM passage JOIN item ON item.num = passage.item
WHERE passage.vector_state = 'pending' AND passage.id > %s ORDER BY passage.id LIMIT %s"""
SET_STATES = "UPDATE passage SET vector_state = %s WHERE id = ANY(%s::bigint[]) RETURNING id, bucket"
SET_VECTOR = """
INSERT INTO embedded (passage, bucket, embedding) VALUES (%s, %s, %s::vector)
ON CONFLICT (passage) DO UPDATE SET bucket = excluded.bucket, embedding = excluded.embedding"""
DROP_VECTOR = "DELETE FROM embedded WHERE passage = ANY(%s::bigint[])"
ALL_PENDING = "UPDATE passage SET vector_state = 'pending' WHERE vector_state <> 'pending'"
DROP_VECTORS = "DELETE FROM embedded"
SHARE_SPACE = "SELECT pg_advisory_xact_lock_shared(%s::integer, %s::integer)"
TAKE_SPACE = "SELECT pg_advisory_xact_lock(%s::integer, %s::integer)"

# --- leases -----------------------------------------------------------------------------------------------

GET_LEASE = "SELECT holder, host, pid, born, expires FROM lease WHERE name = %s FOR UPDATE"
SET_LEASE = """
INSERT INTO lease (name, holder, host, pid, born, expires) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, host = excluded.host, pid = excluded.pid,
    born = excluded.born, expires = excluded.expires"""
LOCK_LEASE = "SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext(%s))"
DROP_LEASE = "DELETE FROM lease WHERE name = %s AND holder = %s"

# --- checking and repairing -------------------------------------------------------------------------------

TEXTS = """
SELECT passage.id, passage.bucket, item.title, passage.heading, passage.body, passage.digest, passage.tokens
FROM passage JOIN item ON item.num = passage.item WHERE passage.id > %s ORDER BY passage.id LIMIT %s"""
POSTED = """
SELECT passage, count(DISTINCT bucket), min(bucket), sum(term::numeric * times), min(length), max(length)
FROM posting WHERE passage > %s AND passage <= %s GROUP BY passage"""
COUNT_STRAY_POSTINGS = """
SELECT count(*) FROM posting WHERE NOT EXISTS (SELECT 1 FROM passage WHERE passage.id = posting.passage)"""
COUNT_WRONG_TERMS = """
SELECT count(*) FROM (SELECT term, count(*) AS passages FROM posting GROUP BY term) AS counted
FULL JOIN term AS held USING (term) WHERE counted.passages IS DISTINCT FROM held.passages"""
CORPUS = "SELECT passages, tokens FROM corpus"
SET_CORPUS = "UPDATE corpus SET passages = 0, tokens = 0"
SET_TOKENS = "UPDATE passage SET tokens = %s WHERE id = %s"
BROKEN_INDEXES = """
SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = current_schema()::regnamespace AND NOT indisvalid ORDER BY 1"""
COUNT_UNFIT_VECTORS = """
SELECT count(*) FROM embedded WHERE vector_dims(embedding) <> %s OR NOT abs(vector_norm(embedding) - 1) <= %s"""
DROP_UNFIT_VECTORS = """
DELETE FROM embedded WHERE vector_dims(embedding) <> %s OR NOT abs(vector_norm(embedding) - 1) <= %s"""
COUNT_LOST_VECTORS = """
SELECT count(*) FROM passage LEFT JOIN embedded ON embedded.passage = passage.id
WHERE (vector_state = 'ok') IS DISTINCT FROM (embedded.passage IS NOT NULL) OR embedded.bucket <> passage.bucket"""
PLACE_VECTORS = """
UPDATE embedded SET bucket = passage.bucket FROM passage
WHERE passage.id = embedded.passage AND embedded.bucket <> passage.bucket"""
FIND_VECTORS = """
UPDATE passage SET vector_state = 'ok' WHERE vector_state <> 'ok' AND id IN (SELECT passage FROM embedded)"""
FORGET_MISSING_VECTORS = """
UPDATE passage SET vector_state = 'pending' WHERE vector_state = 'ok' AND id NOT IN (SELECT passage FROM embedded)"""
SCRUB = "VACUUM (FULL, ANALYZE) item, passage, evidence, checkpoint, project, recall, lease, meta, posting, term"
MAINTAIN = "VACUUM (ANALYZE)"
