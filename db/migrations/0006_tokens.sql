-- Who may call over the network. A token is "fus_<id>_<secret>"; of the whole only its SHA-256 is kept.
CREATE TABLE tokens (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL CHECK (length(hash) = 64),
  roles      TEXT NOT NULL,
  joins      INTEGER NOT NULL CHECK (joins IN (0, 1)),
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  revoked_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;
