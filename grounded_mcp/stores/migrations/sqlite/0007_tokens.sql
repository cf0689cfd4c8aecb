-- Who may use a team's server. The token itself is shown once and kept nowhere; digest: its SHA-256, in hexadecimal.
CREATE TABLE token (
    name       TEXT PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    projects   TEXT NOT NULL, -- JSON arrays: keys of projects, and scopes besides theirs
    scopes     TEXT NOT NULL,
    read_only  INTEGER NOT NULL,
    metrics    INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    revoked_at REAL
) STRICT, WITHOUT ROWID;
