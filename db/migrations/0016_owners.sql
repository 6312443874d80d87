-- Who submitted: the caller's name as the server knows it. Submissions from before have none, and are for administrators.
ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE joined_submissions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE INDEX joined_submissions_by_owner ON joined_submissions (owner, created_ms);
