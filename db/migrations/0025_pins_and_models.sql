-- A job that is pinned is kept until it is unpinned, with what it names.
ALTER TABLE jobs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
-- The blobs of a model, once for all jobs that compile it, so that a sweep reads no requests. '' = from before this
-- migration: the blobs stand in the request alone.
ALTER TABLE jobs ADD COLUMN model TEXT NOT NULL DEFAULT '';
CREATE TABLE model_blobs (
  model  TEXT NOT NULL CHECK (length(model) = 64),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  PRIMARY KEY (model, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_by_model ON jobs (model, id) WHERE model <> '';
CREATE INDEX jobs_without_model ON jobs (number) WHERE model = '';
CREATE TRIGGER model_forgotten AFTER DELETE ON jobs WHEN OLD.model <> '' BEGIN
  DELETE FROM model_blobs WHERE model = OLD.model
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE model = OLD.model AND model <> '');
END;
CREATE INDEX jobs_bundles ON jobs (bundle_digest, id) WHERE bundle_digest <> '';
CREATE INDEX jobs_early_bundles ON jobs (early_digest, id) WHERE early_digest <> '';
-- What goes first, by age or by size.
DROP INDEX jobs_final;
CREATE INDEX jobs_final ON jobs (finished_ms) WHERE state > 2 AND pinned = 0;
