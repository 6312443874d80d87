-- Numbers that only rise, whatever becomes of the rows that had them. Before, a fence was one above the largest of the
-- tasks that were left; the million keeps clear of fences whose rows were replaced.
CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('fence', (SELECT COALESCE(MAX(fence) + 1000000, 0) FROM tasks));

-- One row. Task ids derive from keys, so that those of two databases may be equal; `origin` tells them apart.
CREATE TABLE identity (origin TEXT NOT NULL) STRICT;
INSERT INTO identity VALUES (lower(hex(randomblob(16))));

-- Which attempt at which task the row is of, and which of its items. '' = unknown: from before this migration, or
-- imported from a server that does not say it.
ALTER TABLE measurements ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE measurements ADD COLUMN task TEXT NOT NULL DEFAULT '';
ALTER TABLE measurements ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE measurements ADD COLUMN item INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX measurements_once ON measurements (origin, task, fence, item) WHERE task <> '';
ALTER TABLE plan_comparisons ADD COLUMN task TEXT NOT NULL DEFAULT '';
ALTER TABLE plan_comparisons ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plan_comparisons ADD COLUMN item INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX plan_comparisons_once ON plan_comparisons (task, fence, item) WHERE task <> '';
