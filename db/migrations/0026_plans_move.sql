-- Comparisons and measurements of whole plans move between servers. Task ids of two databases may be equal; `origin`
-- tells them apart, as in measurements. '' = unknown.
ALTER TABLE plan_comparisons ADD COLUMN origin TEXT NOT NULL DEFAULT '';
UPDATE plan_comparisons SET origin = (SELECT origin FROM identity) WHERE task <> '';
DROP INDEX plan_comparisons_once;
CREATE UNIQUE INDEX plan_comparisons_once ON plan_comparisons (origin, task, fence, item) WHERE task <> '';
-- Whose word an imported row is ('': it is of this server), and whether that source is in quarantine.
ALTER TABLE plan_measurements ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE plan_measurements ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
CREATE INDEX plan_measurements_by_source ON plan_measurements (source) WHERE source <> '';
CREATE INDEX plan_measurements_by_bundle ON plan_measurements (bundle_digest, time_ms);
