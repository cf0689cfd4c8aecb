-- What is stored. Everything below the line is derived from this and can be rebuilt.
-- Texts are compared byte by byte, as SQLite does it: the order of ids decides ties.

CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE secret (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE lease (
    name    text COLLATE "C" PRIMARY KEY,
    holder  text NOT NULL,
    host    text NOT NULL,
    pid     bigint NOT NULL,
    born    text NOT NULL,
    expires double precision NOT NULL
);

CREATE TABLE project (
    key      text COLLATE "C" PRIMARY KEY,
    name     text NOT NULL,
    reason   text NOT NULL,
    root     text NOT NULL,
    branch   text,
    worktree text,
    seen_at  double precision NOT NULL
);

-- One row per (scope, kind). Searches are bounded by bucket.
CREATE TABLE bucket (
    id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text COLLATE "C" NOT NULL,
    kind  text COLLATE "C" NOT NULL,
    UNIQUE (scope, kind)
);

CREATE TABLE item (
    num           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text COLLATE "C" NOT NULL UNIQUE,
    bucket        integer NOT NULL REFERENCES bucket (id),
    key           text COLLATE "C",
    title         text NOT NULL,
    body          text,
    state         text COLLATE "C" NOT NULL,
    origin        text COLLATE "C" NOT NULL,
    importance    double precision,
    pinned        boolean NOT NULL,
    created_at    double precision NOT NULL,
    updated_at    double precision NOT NULL,
    content_hash  text COLLATE "C" NOT NULL,
    attrs         text NOT NULL,
    passages      integer NOT NULL,
    size          bigint NOT NULL,
    state_at      double precision,
    superseded_by text COLLATE "C"
);

CREATE UNIQUE INDEX item_active_key ON item (bucket, key) WHERE state = 'active' AND key IS NOT NULL;
CREATE INDEX item_key ON item (bucket, key);
CREATE INDEX item_updated ON item (updated_at);
CREATE INDEX item_superseded_by ON item (superseded_by) WHERE superseded_by IS NOT NULL;

-- A sequence gives no number twice: an id that a search returned never comes to mean another passage.
CREATE TABLE passage (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item         bigint NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    bucket       integer NOT NULL REFERENCES bucket (id),
    seq          bigint NOT NULL,
    vector_state text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (vector_state IN ('pending', 'ok', 'none')),
    start_line   bigint,
    end_line     bigint,
    digest       bytea NOT NULL,
    heading      text NOT NULL,
    body         text NOT NULL,
    tokens       text NOT NULL
);

CREATE INDEX passage_item ON passage (item, seq);
CREATE INDEX passage_pending ON passage (id) WHERE vector_state = 'pending';

-- A vector's bucket is its passage's: a search compares those of the admitted buckets, and reads nothing else. The table
-- cannot be called what its type is called.
CREATE TABLE embedded (
    passage   bigint PRIMARY KEY REFERENCES passage (id) ON DELETE CASCADE,
    bucket    integer NOT NULL,
    embedding vector NOT NULL
);

CREATE INDEX embedded_bucket ON embedded (bucket);

----------------------------------------------------------------------------------------------------------------

-- The inverted index over the analyzer's tokens, each as 8 bytes of its digest: how often a passage holds it, and how
-- many tokens the passage has. All of it is in the key's index, so that a search need not read the table.
CREATE TABLE posting (
    term    bigint NOT NULL,
    bucket  integer NOT NULL,
    passage bigint NOT NULL,
    times   integer NOT NULL,
    length  integer NOT NULL,
    PRIMARY KEY (term, bucket, passage) INCLUDE (times, length)
);

-- What BM25 weighs by: how many passages hold a term, how many passages and tokens there are.
CREATE TABLE term (
    term     bigint PRIMARY KEY,
    passages bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE corpus (
    passages bigint NOT NULL,
    tokens   bigint NOT NULL
) WITH (fillfactor = 10);

INSERT INTO corpus (passages, tokens) VALUES (0, 0);
