-- Plans of one model that ran in turns, whole and warm: each beside the reference of its measurement. Appended, never
-- overwritten; the answer is elected from all rows of a plan and a reference.
CREATE TABLE plan_comparisons (
  id                 INTEGER PRIMARY KEY,
  plan_key           TEXT NOT NULL CHECK (length(plan_key) = 64),
  reference_key      TEXT NOT NULL CHECK (length(reference_key) = 64),
  device_fingerprint TEXT NOT NULL,
  description        TEXT NOT NULL,
  threads            INTEGER NOT NULL CHECK (threads > 0),
  rounds             INTEGER NOT NULL CHECK (rounds > 0),
  ratio              REAL NOT NULL CHECK (ratio > 0),
  ratio_low          REAL NOT NULL CHECK (ratio_low > 0),
  ratio_high         REAL NOT NULL CHECK (ratio_high > 0),
  median_ns          REAL NOT NULL CHECK (median_ns > 0),
  reference_ns       REAL NOT NULL CHECK (reference_ns > 0),
  model_ns           REAL NOT NULL CHECK (model_ns >= 0),
  reference_model_ns REAL NOT NULL CHECK (reference_model_ns >= 0),
  worker             TEXT NOT NULL,
  time_ms            INTEGER NOT NULL
) STRICT;
CREATE INDEX plan_comparisons_by_plan ON plan_comparisons (plan_key, reference_key);
