-- What was asked and what came of it, in counters; the words of a question only where the user asked for that.
CREATE TABLE client_session (
    num      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id       text COLLATE "C" NOT NULL UNIQUE,
    client   text NOT NULL,
    project  text COLLATE "C" NOT NULL,
    first_at double precision NOT NULL,
    last_at  double precision NOT NULL
);

CREATE INDEX client_session_last ON client_session (last_at);

CREATE TABLE recall (
    num       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        text COLLATE "C" NOT NULL UNIQUE,
    session   bigint NOT NULL REFERENCES client_session (num) ON DELETE CASCADE,
    at        double precision NOT NULL,
    tool      text NOT NULL,
    project   text COLLATE "C" NOT NULL,
    intent    text NOT NULL,
    asked     text NOT NULL,
    mode      text NOT NULL,
    degraded  text NOT NULL,
    embed_ms  double precision NOT NULL,
    db_ms     double precision NOT NULL,
    rerank_ms double precision NOT NULL,
    total_ms  double precision NOT NULL,
    results   bigint NOT NULL,
    reused    boolean,
    query     text
);

CREATE INDEX recall_session ON recall (session, at);
CREATE INDEX recall_at ON recall (at);

-- What a recall returned, by rank from 1. What is forgotten is forgotten here, too.
CREATE TABLE recall_item (
    recall    bigint NOT NULL REFERENCES recall (num) ON DELETE CASCADE,
    rank      bigint NOT NULL,
    item      bigint NOT NULL REFERENCES item (num) ON DELETE CASCADE,
    opened_at double precision,
    PRIMARY KEY (recall, rank)
);

CREATE INDEX recall_item_item ON recall_item (item, recall);
