"""Every statement of the SQLite store but its schema (``migrations/sqlite``), by the verb that uses it.

Lists of values are passed as one JSON array, so that no statement is put together from pieces.
"""

from __future__ import annotations

# --- writing ----------------------------------------------------------------------------------------------

ITEM_FIELDS = (
    "id, bucket, key, title, body, state, origin, importance, pinned, created_at, updated_at, content_hash, attrs, "
    "passages, size"
)

ITEM_NUM = "SELECT num, state FROM item WHERE id = ?"
ITEM_ROW = f"SELECT num, {ITEM_FIELDS} FROM item WHERE id = ?"  # noqa: S608
RIVALS = "SELECT num, id FROM item WHERE bucket = ? AND key = ? AND state = 'active' AND id <> ?"
INSERT_ITEM = f"INSERT INTO item ({ITEM_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
UPDATE_ITEM = f"""
UPDATE item SET ({ITEM_FIELDS}) = (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15),
    superseded_by = iif(?6 = 'superseded', superseded_by, NULL)
WHERE num = ?16"""  # noqa: S608
RETIRE_ITEM = """
UPDATE item SET state = 'superseded', superseded_by = :by, state_at = :at, passages = 0,
    body = coalesce(body, (
        SELECT group_concat(body, '') FROM (SELECT body FROM passage WHERE item = :num ORDER BY seq, id)))
WHERE num = :num"""
MARK_ITEM = "UPDATE item SET state = ?, state_at = ? WHERE num = ?"
DELETE_ITEMS = "DELETE FROM item WHERE id IN (SELECT value FROM json_each(?))"

FIND_BUCKET = "SELECT id FROM bucket WHERE scope = ? AND kind = ?"
INSERT_BUCKET = "INSERT INTO bucket (scope, kind) VALUES (?, ?) RETURNING id"

ITEM_PASSAGES = "SELECT id, digest, seq, start_line, end_line, at FROM passage WHERE item = ? ORDER BY seq, id"
KNOWN_DIGESTS = """
SELECT digest FROM passage JOIN item ON item.num = passage.item
WHERE item.id IN (SELECT value FROM json_each(?))"""
INSERT_PASSAGE = """
INSERT INTO passage (item, bucket, seq, start_line, end_line, at, digest, heading, body, tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"""
PLACE_PASSAGE = "UPDATE passage SET seq = ?, start_line = ?, end_line = ?, at = ? WHERE id = ?"
MOVE_PASSAGES = "UPDATE passage SET bucket = ?1 WHERE item = ?2 AND bucket <> ?1"
DELETE_PASSAGE = "DELETE FROM passage WHERE id = ?"
DELETE_ITEM_PASSAGES = "DELETE FROM passage WHERE item = ?"

REGISTER = """
INSERT INTO project (key, name, reason, root, branch, worktree, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET name = excluded.name, reason = excluded.reason, root = excluded.root,
    branch = excluded.branch, worktree = excluded.worktree, seen_at = excluded.seen_at"""
UNREGISTER = "DELETE FROM project WHERE key = ?"
DROP_EMPTY_BUCKETS = "DELETE FROM bucket WHERE id NOT IN (SELECT bucket FROM item)"

# --- reading ----------------------------------------------------------------------------------------------

_ITEM = """item.id, bucket.kind, bucket.scope, item.title, item.key, item.body, item.state, item.origin,
    item.importance, item.pinned, item.created_at, item.updated_at, item.content_hash, item.attrs"""
_FROM_ITEM = "FROM item JOIN bucket ON bucket.id = item.bucket"

ITEM = f"SELECT {_ITEM} {_FROM_ITEM} WHERE item.id = ?"
PASSAGES = """
SELECT seq, passage.body, heading, start_line, end_line, at FROM passage JOIN item ON item.num = passage.item
WHERE item.id = ? ORDER BY seq, passage.id"""
IDS = "SELECT id FROM item WHERE id > ? ORDER BY id LIMIT ?"
FIND = f"""
SELECT {_ITEM} {_FROM_ITEM}
WHERE bucket.kind = ? AND bucket.scope = ? AND item.key = ? AND item.state = 'active'"""
HISTORY = f"""
WITH RECURSIVE old (id) AS (
    SELECT id FROM item WHERE superseded_by = ?1
    UNION SELECT item.id FROM item JOIN old ON item.superseded_by = old.id
)
SELECT {_ITEM} {_FROM_ITEM}
WHERE item.id IN (SELECT id FROM old) AND item.id <> ?1 AND item.state = 'superseded'
ORDER BY item.state_at DESC, item.num DESC LIMIT ?2"""  # noqa: S608
SUCCESSOR = f"""
WITH RECURSIVE later (id) AS (
    SELECT superseded_by FROM item WHERE id = ?1 AND state = 'superseded'
    UNION SELECT item.superseded_by FROM item JOIN later USING (id) WHERE item.state = 'superseded'
)
SELECT {_ITEM} {_FROM_ITEM} WHERE item.id IN (SELECT id FROM later) AND item.state <> 'superseded'"""  # noqa: S608
KNOWN = """
SELECT item.id, item.key, item.content_hash, item.state, item.created_at, item.updated_at, item.attrs
FROM item JOIN bucket ON bucket.id = item.bucket
WHERE bucket.kind = ? AND bucket.scope = ? AND item.key IS NOT NULL AND item.state <> 'superseded'
ORDER BY item.key, item.state = 'active', item.num"""
RECENT = f"""
SELECT {_ITEM} {_FROM_ITEM}
WHERE item.num IN (
    SELECT num FROM item
    WHERE bucket IN (SELECT value FROM json_each(:buckets)) AND passages > 0
        AND (NOT :windowed OR updated_at BETWEEN :since AND :until)
    ORDER BY updated_at DESC, id LIMIT :k)
ORDER BY item.updated_at DESC, item.id"""  # noqa: S608
FETCH = f"""
SELECT passage.id, passage.seq, passage.body, passage.heading, passage.start_line, passage.end_line, passage.at,
    passage.tokens,
    item.passages, item.size, {_ITEM}
FROM passage JOIN item ON item.num = passage.item JOIN bucket ON bucket.id = item.bucket
WHERE passage.id IN (SELECT value FROM json_each(?))"""  # noqa: S608
SCOPES = "SELECT DISTINCT scope FROM bucket WHERE EXISTS (SELECT 1 FROM item WHERE item.bucket = bucket.id)"
PROJECTS = "SELECT key, name, reason, root, branch, worktree FROM project ORDER BY key"

COUNT_ITEMS = """
SELECT kind, count(*) FROM item JOIN bucket ON bucket.id = item.bucket
WHERE ?1 IS NULL OR scope IN (SELECT value FROM json_each(?1)) GROUP BY kind ORDER BY kind"""
_ADMITTED = """bucket IN (
    SELECT id FROM bucket
    WHERE iif(kind = 'fact', :facts, :others) IS NULL
        OR scope IN (SELECT value FROM json_each(iif(kind = 'fact', :facts, :others))))"""
COUNT_PENDING = f"""
SELECT count(*) FROM passage INDEXED BY passage_waiting WHERE vector_state = 'pending' AND {_ADMITTED}"""  # noqa: S608
SUM_PASSAGES = f"SELECT coalesce(sum(passages), 0) FROM item WHERE {_ADMITTED}"  # noqa: S608
COUNT_PASSAGES = "SELECT vector_state, count(*) FROM passage GROUP BY vector_state"
COUNT_PASSAGES_OF = """
SELECT vector_state, count(*) FROM passage JOIN bucket ON bucket.id = passage.bucket
WHERE scope IN (SELECT value FROM json_each(?)) GROUP BY vector_state"""

GET_META = "SELECT value FROM meta WHERE name = ?"
SET_META = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
INIT_META = "INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)"
DROP_META = "DELETE FROM meta WHERE name = ?"
GET_SECRET = "SELECT value FROM secret WHERE name = ?"  # noqa: S105 - a statement
MAKE_SECRET = "INSERT OR IGNORE INTO secret (name, value) VALUES (?, ?)"  # noqa: S105 - a statement

# --- where it came from -----------------------------------------------------------------------------------

CHECKPOINTS = "SELECT source, state FROM checkpoint WHERE source >= ? AND source < ? || char(1114111)"
SET_CHECKPOINT = "INSERT OR REPLACE INTO checkpoint (source, state) VALUES (?, ?)"
EVIDENCE = """
SELECT session, place, supports, kind, note, at FROM evidence JOIN item ON item.num = evidence.item
WHERE item.id = ? ORDER BY at, session, place"""
TALLIES = """
SELECT item.id, evidence.kind, supports, count(*), max(at)
FROM json_each(?) JOIN item ON item.id = value JOIN evidence ON evidence.item = item.num
GROUP BY item.num, evidence.kind, supports ORDER BY item.num, evidence.kind, supports"""
_WEIGHT = "total(CASE kind WHEN 'verified outcome' THEN :verified WHEN 'stated' THEN :stated ELSE :diagnostic END)"
PROVEN = f"""
WITH weighed AS (
    SELECT item, max(at) AS newest, {_WEIGHT} FILTER (WHERE supports) AS s, {_WEIGHT} FILTER (WHERE NOT supports) AS c
    FROM evidence WHERE item IN (
        SELECT num FROM item WHERE state = 'active' AND bucket IN (SELECT value FROM json_each(:buckets)))
    GROUP BY item HAVING max(supports AND kind = 'verified outcome')
)
SELECT id, count(*) OVER () FROM weighed JOIN item ON item.num = weighed.item
ORDER BY round(s / (s + c + 1), 9) DESC, newest DESC, id LIMIT :k"""  # noqa: S608
ADD_EVIDENCE = """
INSERT OR REPLACE INTO evidence (item, session, place, supports, kind, note, at)
SELECT num, ?2, ?3, ?4, ?5, ?6, ?7 FROM item WHERE id = ?1"""
EVIDENCE_ITEMS = "SELECT DISTINCT item FROM evidence WHERE session = ? AND place >= ?"
RETRACT_EVIDENCE = "DELETE FROM evidence WHERE session = ? AND place >= ?"
DROP_UNFOUNDED = """
DELETE FROM item WHERE num IN (SELECT value FROM json_each(?)) AND origin = 'derived'
    AND bucket IN (SELECT id FROM bucket WHERE kind = 'script')
    AND num NOT IN (SELECT item FROM evidence)"""
ADD_CONFLICT = """
INSERT OR IGNORE INTO conflict (item, other)
SELECT one.num, two.num FROM item AS one, item AS two WHERE one.id = ? AND two.id = ? AND one.num <> two.num"""
CONFLICTS = f"""
SELECT one.id, {_ITEM} FROM item AS one JOIN conflict ON conflict.item = one.num
JOIN item ON item.num = conflict.other JOIN bucket ON bucket.id = item.bucket
WHERE one.id IN (SELECT value FROM json_each(?)) AND one.state <> 'superseded' AND item.state <> 'superseded'
ORDER BY one.id, item.updated_at DESC, item.id"""  # noqa: S608
BURY = "INSERT OR IGNORE INTO tombstone (digest, at) VALUES (?, ?)"
BURIED = "SELECT digest FROM tombstone"

# --- searching --------------------------------------------------------------------------------------------

BUCKETS = """
SELECT id FROM bucket WHERE kind IN (SELECT value FROM json_each(:kinds))
    AND (:scopes IS NULL OR scope IN (SELECT value FROM json_each(:scopes)))
ORDER BY id"""

# The passages of a time window are listed once per search; every other condition is inside MATCH or the sweep.
_WITHIN = """(NOT :windowed OR {} IN (
        SELECT passage.id FROM item JOIN passage ON passage.item = item.num
        WHERE item.updated_at BETWEEN :since AND :until))"""

# Weights: the place of a passage decides whether it is found, never how well.
LEXICAL = f"""
SELECT rowid, round(-bm25(passage_fts, 1.0, 0.0), 9) AS score FROM passage_fts
WHERE passage_fts MATCH :match AND {_WITHIN.format("+rowid")}
ORDER BY score DESC, rowid LIMIT :k"""  # noqa: S608

SWEEP = f"""
SELECT passage, embedding FROM vector WHERE passage IN (
    SELECT passage FROM sketch
    WHERE bucket IN (SELECT value FROM json_each(:buckets)) AND {_WITHIN.format("sketch.passage")}
    ORDER BY vec_distance_l1(vec_int8(code), vec_int8(:code)), passage LIMIT :candidates)"""  # noqa: S608

# Items by how much of them lies in a time window, then by how far they are from it. What has passages with times of
# their own is where those are; anything else is where it began and where it ended.
_SPANS = """
SELECT num, min(created_at, updated_at) AS began, updated_at AS ended,
    EXISTS (SELECT 1 FROM passage WHERE item = num AND at IS NOT NULL) AS timed
FROM item
WHERE bucket IN (SELECT value FROM json_each(:buckets)) AND passages > 0
    AND updated_at >= :since - :reach AND min(created_at, updated_at) <= :until + :reach
    AND (NOT :windowed OR updated_at BETWEEN :floor AND :ceiling)"""
_COUNTED = f"""
SELECT *, CASE WHEN timed
    THEN (SELECT count(DISTINCT at) FROM passage WHERE item = num AND at BETWEEN :since AND :until)
    ELSE began BETWEEN :since AND :until OR ended BETWEEN :since AND :until END AS inside
FROM ({_SPANS})"""  # noqa: S608
TIMED_INSIDE = f"SELECT num, inside, 0.0 FROM ({_COUNTED}) WHERE inside ORDER BY inside DESC, num LIMIT :k"  # noqa: S608
TIMED_NEAR = f"""
WITH placed AS MATERIALIZED (
    SELECT num, inside, CASE WHEN inside THEN 0.0 WHEN timed
        THEN min(coalesce(:since - (SELECT max(at) FROM passage WHERE item = num AND at < :since), 1e300),
            coalesce((SELECT min(at) FROM passage WHERE item = num AND at > :until) - :until, 1e300))
        ELSE max(:since - ended, began - :until, 0.0) END AS gap
    FROM ({_COUNTED})
)
SELECT num, inside, gap FROM placed WHERE gap <= :reach ORDER BY inside DESC, gap, num LIMIT :k"""  # noqa: S608
# An exchange stands for itself by its first passage, what has no times by its very first one.
TIMED_PASSAGES = """
SELECT item, at, min(id) FROM passage
WHERE item IN (SELECT value FROM json_each(:items)) AND at BETWEEN :since - :reach AND :until + :reach GROUP BY item, at
UNION ALL
SELECT value, NULL, (SELECT id FROM passage WHERE item = value ORDER BY seq, id LIMIT 1) FROM json_each(:items)
WHERE NOT EXISTS (SELECT 1 FROM passage WHERE item = value AND at IS NOT NULL)
ORDER BY 1, 2, 3"""

STAMPS = "SELECT id, stamp FROM bucket WHERE stamp > 0 AND id IN (SELECT value FROM json_each(?)) ORDER BY id"
COUNT_BUCKET = "SELECT count(*) FROM sketch WHERE bucket = ?"
BUCKET_VECTORS = """
SELECT sketch.passage, embedding FROM sketch JOIN vector ON vector.passage = sketch.passage
WHERE sketch.bucket = ? ORDER BY sketch.passage"""

# --- entities ---------------------------------------------------------------------------------------------

ADD_MENTIONS = """
INSERT OR IGNORE INTO mention (entity, bucket, passage)
SELECT value ->> 0, ?2, value ->> 1 FROM json_each(?1)"""
MENTIONS = f"""
SELECT value, (SELECT group_concat(passage, ' ') FROM (
        SELECT passage FROM mention
        WHERE entity = value AND bucket IN (SELECT value FROM json_each(:buckets)) AND {_WITHIN.format("passage")}
        LIMIT :k))
FROM json_each(:entities)"""  # noqa: S608
ENTITIES_OF = """
SELECT passage, entity FROM mention WHERE passage IN (SELECT value FROM json_each(?)) ORDER BY passage, entity"""
ALL_MENTIONED = """
SELECT id, bucket, body,
    (SELECT json_group_array(entity) FROM (SELECT entity FROM mention WHERE passage = id ORDER BY entity))
FROM passage"""
COUNT_STRAY_MENTIONS = """
SELECT count(*) FROM mention WHERE NOT EXISTS (
    SELECT 1 FROM passage WHERE passage.id = mention.passage AND passage.bucket = mention.bucket)"""

# --- vectors ----------------------------------------------------------------------------------------------

PENDING = """
SELECT passage.id, item.title, passage.heading, passage.body FROM passage JOIN item ON item.num = passage.item
WHERE passage.vector_state = 'pending' AND passage.id > ? ORDER BY passage.id LIMIT ?"""
SET_VECTOR_STATE = "UPDATE passage SET vector_state = ? WHERE id = ? RETURNING bucket"
SET_VECTOR = "INSERT OR REPLACE INTO vector (passage, embedding) VALUES (?, ?)"
SET_SKETCH = "INSERT OR REPLACE INTO sketch (bucket, passage, code) VALUES (?, ?, ?)"
DROP_VECTOR = "DELETE FROM vector WHERE passage = ?"
DROP_SKETCH = "DELETE FROM sketch WHERE bucket = ? AND passage = ?"
ALL_PENDING = "UPDATE passage SET vector_state = 'pending' WHERE vector_state <> 'pending'"
DROP_VECTORS = "DELETE FROM vector"
DROP_SKETCHES = "DELETE FROM sketch"

# --- leases -----------------------------------------------------------------------------------------------

GET_LEASE = "SELECT holder, host, pid, born, expires FROM lease WHERE name = ?"
SET_LEASE = "INSERT OR REPLACE INTO lease (name, holder, host, pid, born, expires) VALUES (?, ?, ?, ?, ?, ?)"
DROP_LEASE = "DELETE FROM lease WHERE name = ? AND holder = ?"

# --- telemetry --------------------------------------------------------------------------------------------

MEET_SESSION = """
INSERT INTO client_session (id, client, project, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?4)
ON CONFLICT (id) DO UPDATE SET last_at = max(last_at, excluded.last_at), first_at = min(first_at, excluded.first_at),
    client = iif(excluded.client = '', client, excluded.client),
    project = iif(excluded.project = '', project, excluded.project)
RETURNING num"""
ADD_RECALL = """
INSERT OR IGNORE INTO recall (id, session, at, tool, project, intent, asked, mode, degraded, embed_ms, db_ms, rerank_ms,
    total_ms, results, query)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING num"""
ADD_RECALL_ITEMS = """
INSERT INTO recall_item (recall, rank, item)
SELECT ?1, each.key + 1, item.num FROM json_each(?2) AS each JOIN item ON item.id = each.value"""
NOTE_OPENED = """
UPDATE recall_item SET opened_at = coalesce(opened_at, ?3)
WHERE item = (SELECT num FROM item WHERE id = ?2) AND recall = (
    SELECT recall.num FROM recall JOIN client_session ON client_session.num = recall.session
    WHERE client_session.id = ?1 AND EXISTS (
        SELECT 1 FROM recall_item JOIN item ON item.num = recall_item.item
        WHERE recall_item.recall = recall.num AND item.id = ?2)
    ORDER BY recall.at DESC, recall.num DESC LIMIT 1)"""
NOTE_REUSE = "UPDATE recall SET reused = ? WHERE id = ?"
PRUNE_RECALLS = "DELETE FROM recall WHERE at < ?"
PRUNE_SESSIONS = "DELETE FROM client_session WHERE last_at < ?"
COUNT_UP = """
INSERT INTO meta (name, value) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value"""
DROP_QUERY = "UPDATE recall SET query = NULL WHERE num = ?"
DROP_QUERIES = """
UPDATE recall SET query = NULL WHERE query IS NOT NULL AND num IN (
    SELECT recall FROM recall_item JOIN item ON item.num = recall_item.item
    WHERE item.id IN (SELECT value FROM json_each(?)))"""

NOTED_SESSIONS = """
SELECT id, client, first_at, last_at FROM client_session WHERE last_at >= :since AND (
    :project IS NULL OR project = :project
    OR EXISTS (SELECT 1 FROM recall WHERE session = client_session.num AND recall.project = :project))
ORDER BY first_at, num"""
NOTED_RECALLS = """
SELECT recall.id, client_session.id, recall.at, tool, recall.project, intent, asked, mode, degraded,
    embed_ms, db_ms, rerank_ms, total_ms, results,
    (SELECT count(opened_at) FROM recall_item WHERE recall_item.recall = recall.num), reused
FROM recall JOIN client_session ON client_session.num = recall.session
WHERE recall.at >= :since AND (:project IS NULL OR recall.project = :project) ORDER BY recall.at, recall.num"""
NOTED_ITEMS = """
SELECT item.id, bucket.kind, count(DISTINCT recall.num) AS recalled,
    count(DISTINCT iif(recall_item.opened_at IS NULL, NULL, recall.num)) AS opened,
    count(DISTINCT iif(recall.reused = 1, recall.num, NULL)) AS reused
FROM recall JOIN recall_item ON recall_item.recall = recall.num
    JOIN item ON item.num = recall_item.item JOIN bucket ON bucket.id = item.bucket
WHERE recall.at >= :since AND (:project IS NULL OR recall.project = :project) GROUP BY item.num
ORDER BY reused DESC, opened DESC, recalled DESC, item.id LIMIT :top"""
_OF_PROJECTS = "(?2 IS NULL OR recall.project IN (SELECT value FROM json_each(?2)))"
FIND_RECALL = f"SELECT id FROM recall WHERE id = ?1 AND {_OF_PROJECTS}"  # noqa: S608
LATEST_RECALL = f"""
SELECT recall.id FROM recall JOIN client_session ON client_session.num = recall.session
WHERE client_session.id = ?1 AND {_OF_PROJECTS} ORDER BY recall.at DESC, recall.num DESC LIMIT 1"""  # noqa: S608
RECALLED_ITEMS = """
SELECT recall.id, rank, item.id, bucket.kind, opened_at IS NOT NULL
FROM recall JOIN recall_item ON recall_item.recall = recall.num
    JOIN item ON item.num = recall_item.item JOIN bucket ON bucket.id = item.bucket
WHERE recall.id IN (SELECT value FROM json_each(?)) ORDER BY recall.at, recall.num, rank"""

# --- checking and repairing -------------------------------------------------------------------------------

SCHEMA = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
FTS_CHECK = "INSERT INTO passage_fts (passage_fts, rank) VALUES ('integrity-check', 1)"
FTS_REBUILD = "INSERT INTO passage_fts (passage_fts) VALUES ('rebuild')"
FTS_SECURE = "INSERT INTO passage_fts (passage_fts, rank) VALUES ('secure-delete', 1)"
FTS_OPTIMIZE = "INSERT INTO passage_fts (passage_fts) VALUES ('optimize')"
ALL_TEXTS = """
SELECT passage.id, item.title, passage.heading, passage.body, passage.digest
FROM passage JOIN item ON item.num = passage.item"""
ALL_VECTORS = """
SELECT vector.passage, vector.embedding, passage.bucket, passage.vector_state, sketch.code
FROM vector LEFT JOIN passage ON passage.id = vector.passage
LEFT JOIN sketch ON sketch.bucket = passage.bucket AND sketch.passage = passage.id"""
RAISE_STAMPS = "UPDATE bucket SET stamp = stamp + 1"
SET_TOKENS = "UPDATE passage SET tokens = ? WHERE id = ?"
FORGET_MISSING_VECTORS = """
UPDATE passage SET vector_state = 'pending' WHERE vector_state = 'ok' AND id NOT IN (SELECT passage FROM vector)"""
COUNT_MISSING_VECTORS = """
SELECT count(*) FROM passage WHERE vector_state = 'ok' AND id NOT IN (SELECT passage FROM vector)"""
COUNT_STRAY_SKETCHES = """
SELECT count(*) FROM sketch WHERE NOT EXISTS (
    SELECT 1 FROM passage JOIN vector ON vector.passage = passage.id
    WHERE passage.id = sketch.passage AND passage.bucket = sketch.bucket)"""
