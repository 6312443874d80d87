-- Submissions that joined a job in flight. The job's own row is its first submission. A job is cancelled when every
-- submission has left it; one that has left sees the job's events up to `left_seq` and then its cancellation.
CREATE TABLE joined_submissions (
  id         TEXT PRIMARY KEY,
  job_id     TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  model_name TEXT NOT NULL,
  client_id  TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  left_ms    INTEGER NOT NULL DEFAULT 0,
  left_seq   INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX joined_submissions_of_job ON joined_submissions (job_id, left_ms);
CREATE INDEX joined_submissions_by_time ON joined_submissions (created_ms);
ALTER TABLE jobs ADD COLUMN left_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN left_seq INTEGER NOT NULL DEFAULT 0;
