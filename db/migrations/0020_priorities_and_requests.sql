-- A job runs with the priority of its best submission. A request id names a submission whose answer may have been lost:
-- the same caller's second one with that id is the first. Submissions from before have none.
ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE joined_submissions ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE joined_submissions ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX jobs_by_request ON jobs (owner, request_id) WHERE request_id <> '';
CREATE UNIQUE INDEX joined_submissions_by_request ON joined_submissions (owner, request_id) WHERE request_id <> '';
-- Pages of lists go on behind a row.
DROP INDEX joined_submissions_by_time;
DROP INDEX joined_submissions_by_owner;
CREATE INDEX joined_submissions_by_time ON joined_submissions (created_ms, id);
CREATE INDEX joined_submissions_by_owner ON joined_submissions (owner, created_ms, id);
