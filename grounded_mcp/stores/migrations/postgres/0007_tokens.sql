-- Who may use a team's server. The token itself is shown once and kept nowhere; digest: its SHA-256, in hexadecimal.
CREATE TABLE token (
    name       text COLLATE "C" PRIMARY KEY,
    digest     text COLLATE "C" NOT NULL UNIQUE,
    projects   text NOT NULL, -- JSON arrays: keys of projects, and scopes besides theirs
    scopes     text NOT NULL,
    read_only  boolean NOT NULL,
    metrics    boolean NOT NULL,
    created_at double precision NOT NULL,
    expires_at double precision,
    revoked_at double precision
);
