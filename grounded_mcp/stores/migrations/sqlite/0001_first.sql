-- What is stored. Everything below the line is derived from this and can be rebuilt.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE secret (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
    name    TEXT PRIMARY KEY,
    holder  TEXT NOT NULL,
    host    TEXT NOT NULL,
    pid     INTEGER NOT NULL,
    born    TEXT NOT NULL,
    expires REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE project (
    key      TEXT PRIMARY KEY,
    name     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    root     TEXT NOT NULL,
    branch   TEXT,
    worktree TEXT,
    seen_at  REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per (scope, kind). Searches are bounded by bucket; its number and kind are tokens in the full-text index.
CREATE TABLE bucket (
    id    INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    kind  TEXT NOT NULL,
    stamp INTEGER NOT NULL DEFAULT 0, -- raised with every change of the bucket's vectors
    place TEXT GENERATED ALWAYS AS (kind || ' ' || id) VIRTUAL,
    UNIQUE (scope, kind)
) STRICT;

CREATE TABLE item (
    num           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    bucket        INTEGER NOT NULL REFERENCES bucket (id),
    key           TEXT,
    title         TEXT NOT NULL,
    body          TEXT,
    state         TEXT NOT NULL,
    origin        TEXT NOT NULL,
    importance    REAL,
    pinned        INTEGER NOT NULL,
    created_at    REAL NOT NULL,
    updated_at    REAL NOT NULL,
    content_hash  TEXT NOT NULL,
    attrs         TEXT NOT NULL,
    passages      INTEGER NOT NULL,
    size          INTEGER NOT NULL,
    state_at      REAL,
    superseded_by TEXT
) STRICT;

CREATE UNIQUE INDEX item_active_key ON item (bucket, key) WHERE state = 'active' AND key IS NOT NULL;
CREATE INDEX item_key ON item (bucket, key);
CREATE INDEX item_updated ON item (updated_at);
CREATE INDEX item_superseded_by ON item (superseded_by) WHERE superseded_by IS NOT NULL;

-- AUTOINCREMENT: an id that a search returned never comes to mean another passage.
CREATE TABLE passage (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    item         INTEGER NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    bucket       INTEGER NOT NULL REFERENCES bucket (id),
    seq          INTEGER NOT NULL,
    vector_state TEXT NOT NULL DEFAULT 'pending' CHECK (vector_state IN ('pending', 'ok', 'none')),
    start_line   INTEGER,
    end_line     INTEGER,
    digest       BLOB NOT NULL,
    heading      TEXT NOT NULL,
    body         TEXT NOT NULL,
    tokens       TEXT NOT NULL
) STRICT;

CREATE INDEX passage_item ON passage (item, seq);
CREATE INDEX passage_vector_state ON passage (vector_state);

CREATE TABLE vector (
    passage   INTEGER PRIMARY KEY REFERENCES passage (id) ON DELETE CASCADE,
    embedding BLOB NOT NULL
) STRICT;

----------------------------------------------------------------------------------------------------------------

CREATE VIEW passage_text AS
    SELECT passage.id, passage.tokens, bucket.place
    FROM passage JOIN bucket ON bucket.id = passage.bucket;

-- The tokens are made by the analyzer; this tokenizer does nothing but split them at the spaces.
CREATE VIRTUAL TABLE passage_fts USING fts5 (
    tokens, place,
    content = 'passage_text', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'"
);

INSERT INTO passage_fts (passage_fts, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
    INSERT INTO passage_fts (rowid, tokens, place)
        SELECT new.id, new.tokens, place FROM bucket WHERE id = new.bucket;
END;

-- Each vector once more, as one signed byte per component, next to the others of its bucket: read in one sweep.
CREATE TABLE sketch (
    bucket  INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    code    BLOB NOT NULL,
    PRIMARY KEY (bucket, passage)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER passage_gone AFTER DELETE ON passage BEGIN
    INSERT INTO passage_fts (passage_fts, rowid, tokens, place)
        SELECT 'delete', old.id, old.tokens, place FROM bucket WHERE id = old.bucket;
    DELETE FROM sketch WHERE bucket = old.bucket AND passage = old.id;
END;

CREATE TRIGGER passage_changed AFTER UPDATE OF tokens, bucket ON passage BEGIN
    INSERT INTO passage_fts (passage_fts, rowid, tokens, place)
        SELECT 'delete', old.id, old.tokens, place FROM bucket WHERE id = old.bucket;
    INSERT INTO passage_fts (rowid, tokens, place)
        SELECT new.id, new.tokens, place FROM bucket WHERE id = new.bucket;
    UPDATE sketch SET bucket = new.bucket WHERE bucket = old.bucket AND passage = old.id;
END;

-- Copies of a bucket's vectors in memory are as good as their stamp.
CREATE TRIGGER sketch_added AFTER INSERT ON sketch BEGIN
    UPDATE bucket SET stamp = stamp + 1 WHERE id = new.bucket;
END;

CREATE TRIGGER sketch_gone AFTER DELETE ON sketch BEGIN
    UPDATE bucket SET stamp = stamp + 1 WHERE id = old.bucket;
END;

CREATE TRIGGER sketch_moved AFTER UPDATE OF bucket ON sketch BEGIN
    UPDATE bucket SET stamp = stamp + 1 WHERE id IN (old.bucket, new.bucket);
END;
