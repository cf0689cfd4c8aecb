-- How far a source was read, by its digest: a path may hold what nobody should read.
CREATE TABLE checkpoint (
    source text COLLATE "C" PRIMARY KEY,
    state  text NOT NULL
);

-- One time that a claim held or did not: which conversation (its item's id), and which exchange of it.
CREATE TABLE evidence (
    item     bigint NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    session  text COLLATE "C" NOT NULL,
    place    bigint NOT NULL,
    supports boolean NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    note     text NOT NULL,
    at       double precision NOT NULL,
    PRIMARY KEY (item, session, place)
);

CREATE INDEX evidence_session ON evidence (session, place);

-- What was forgotten on purpose, as a keyed digest: reading its source again does not bring it back.
CREATE TABLE tombstone (
    digest text COLLATE "C" PRIMARY KEY,
    at     double precision NOT NULL
);
