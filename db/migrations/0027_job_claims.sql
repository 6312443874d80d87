-- Who compiles a job: a process, named at random, until then by the machine's steady clock (milliseconds), under a
-- number that rises with each claim of the job. '' = nobody.
ALTER TABLE jobs ADD COLUMN claimant TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN lease_until_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_claimed ON jobs (lease_until_ms) WHERE claimant <> '';
