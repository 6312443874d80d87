-- Whether a row is the certificate of a worker, and no token: `hash` is then the SHA-256 of its public key.
ALTER TABLE tokens ADD COLUMN certificate INTEGER NOT NULL DEFAULT 0 CHECK (certificate IN (0, 1));
