-- What was asked and what came of it, in counters; the words of a question only where the user asked for that.
CREATE TABLE client_session (
    num      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    client   TEXT NOT NULL,
    project  TEXT NOT NULL,
    first_at REAL NOT NULL,
    last_at  REAL NOT NULL
) STRICT;

CREATE INDEX client_session_last ON client_session (last_at);

CREATE TABLE recall (
    num       INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    session   INTEGER NOT NULL REFERENCES client_session (num) ON DELETE CASCADE,
    at        REAL NOT NULL,
    tool      TEXT NOT NULL,
    project   TEXT NOT NULL,
    intent    TEXT NOT NULL,
    asked     TEXT NOT NULL,
    mode      TEXT NOT NULL,
    degraded  TEXT NOT NULL,
    embed_ms  REAL NOT NULL,
    db_ms     REAL NOT NULL,
    rerank_ms REAL NOT NULL,
    total_ms  REAL NOT NULL,
    results   INTEGER NOT NULL,
    reused    INTEGER,
    query     TEXT
) STRICT;

CREATE INDEX recall_session ON recall (session, at);
CREATE INDEX recall_at ON recall (at);

-- What a recall returned, by rank from 1. What is forgotten is forgotten here, too.
CREATE TABLE recall_item (
    recall    INTEGER NOT NULL REFERENCES recall (num) ON DELETE CASCADE,
    rank      INTEGER NOT NULL,
    item      INTEGER NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    opened_at REAL,
    PRIMARY KEY (recall, rank)
) STRICT, WITHOUT ROWID;

CREATE INDEX recall_item_item ON recall_item (item, recall);
