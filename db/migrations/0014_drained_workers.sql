-- Workers that take no new tasks, by their name.
CREATE TABLE drained_workers (
  name     TEXT PRIMARY KEY,
  reason   TEXT NOT NULL,
  by       TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) STRICT;
