-- Whose word a row is: '' = a worker that is believed; 'token NAME', 'imported/…' else. A quarantined source has rows that
-- no plan uses until it is released. standing: 0 = believed, 1 = another worker agrees, 2 = its sentinel and canaries
-- were right, 3 = no other worker could be asked, 4 = imported.
ALTER TABLE measurements ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE measurements ADD COLUMN standing INTEGER NOT NULL DEFAULT 0 CHECK (standing BETWEEN 0 AND 4);
ALTER TABLE measurements ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
ALTER TABLE plan_comparisons ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE plan_comparisons ADD COLUMN standing INTEGER NOT NULL DEFAULT 0 CHECK (standing BETWEEN 0 AND 4);
ALTER TABLE plan_comparisons ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
ALTER TABLE drained_workers ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
CREATE INDEX measurements_by_source ON measurements (source, standing, fence) WHERE source <> '';
CREATE INDEX plan_comparisons_by_source ON plan_comparisons (source, standing, fence) WHERE source <> '';
DROP INDEX measurements_by_question;
CREATE INDEX measurements_by_question ON measurements (question_key, quarantined, median_ns);
DROP INDEX measurements_by_device;
CREATE INDEX measurements_by_device ON measurements (device_fingerprint, question_key, median_ns, model_ns)
  WHERE model_ns > 0 AND quarantined = 0;
