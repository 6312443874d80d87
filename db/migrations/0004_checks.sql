-- What workers found when they ran the finished bundle as a whole: of a job, and of the stored result for later jobs.
ALTER TABLE jobs ADD COLUMN checks BLOB NOT NULL DEFAULT x'';
ALTER TABLE results ADD COLUMN checks BLOB NOT NULL DEFAULT x'';
-- Whole plans, measured warm, beside what the cost model expected (0: unknown). Appended, never overwritten.
CREATE TABLE plan_measurements (
  id                 INTEGER PRIMARY KEY,
  bundle_digest      TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  model_name         TEXT NOT NULL,
  planner            TEXT NOT NULL,
  threads            INTEGER NOT NULL CHECK (threads > 0),
  model_ns           REAL NOT NULL CHECK (model_ns >= 0),
  median_ns          REAL NOT NULL CHECK (median_ns > 0),
  p25_ns             REAL NOT NULL CHECK (p25_ns > 0),
  p75_ns             REAL NOT NULL CHECK (p75_ns > 0),
  worker             TEXT NOT NULL,
  time_ms            INTEGER NOT NULL
) STRICT;
