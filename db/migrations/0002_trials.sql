-- What the cost model expected (0: unknown), and for trials of tuning what was tried.
ALTER TABLE measurements ADD COLUMN model_ns REAL NOT NULL DEFAULT 0 CHECK (model_ns >= 0);
ALTER TABLE measurements ADD COLUMN workload TEXT NOT NULL DEFAULT '';
ALTER TABLE measurements ADD COLUMN structure TEXT NOT NULL DEFAULT '';
ALTER TABLE measurements ADD COLUMN choices TEXT NOT NULL DEFAULT '';
CREATE INDEX measurements_by_workload ON measurements (workload) WHERE workload <> '';
CREATE INDEX measurements_by_structure ON measurements (structure) WHERE structure <> '';
