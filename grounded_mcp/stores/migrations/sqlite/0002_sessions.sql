-- How far a source was read, by its digest: a path may hold what nobody should read.
CREATE TABLE checkpoint (
    source TEXT PRIMARY KEY,
    state  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One time that a claim held or did not: which conversation (its item's id), and which exchange of it.
CREATE TABLE evidence (
    item     INTEGER NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    session  TEXT NOT NULL,
    place    INTEGER NOT NULL,
    supports INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    note     TEXT NOT NULL,
    at       REAL NOT NULL,
    PRIMARY KEY (item, session, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX evidence_session ON evidence (session, place);

-- What was forgotten on purpose, as a keyed digest: reading its source again does not bring it back.
CREATE TABLE tombstone (
    digest TEXT PRIMARY KEY,
    at     REAL NOT NULL
) STRICT, WITHOUT ROWID;
