-- Binaries by their builder: the token by which they came ('': through the socket), with the digest of its toolchain ('':
-- of before toolchains were told apart). An untrusted builder's count when another one made the same.
CREATE TABLE builds_by_builder (
  key           TEXT NOT NULL CHECK (length(key) = 64),
  toolchain     TEXT NOT NULL,
  builder       TEXT NOT NULL,
  binary_digest TEXT NOT NULL,
  trusted       INTEGER NOT NULL CHECK (trusted IN (0, 1)),
  reproduces    INTEGER NOT NULL CHECK (reproduces IN (0, 1)),
  created_ms    INTEGER NOT NULL,
  PRIMARY KEY (key, toolchain, builder)
) STRICT, WITHOUT ROWID;
INSERT INTO builds_by_builder SELECT key, '', '', binary_digest, 1, 0, created_ms FROM builds;
DROP TABLE builds;
ALTER TABLE builds_by_builder RENAME TO builds;
CREATE INDEX builds_by_token ON builds (builder) WHERE builder <> '';
