-- Times are Unix milliseconds. Digests are 64 hex digits. Opaque BLOBs are serialised protocol messages.
CREATE TABLE blobs (
  digest     TEXT PRIMARY KEY CHECK (length(digest) = 64),
  size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
  created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  number        INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  key           TEXT NOT NULL,
  model_name    TEXT NOT NULL,
  target        TEXT NOT NULL,
  client_id     TEXT NOT NULL,
  request       BLOB NOT NULL,
  state         INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
  created_ms    INTEGER NOT NULL,
  started_ms    INTEGER NOT NULL DEFAULT 0,
  finished_ms   INTEGER NOT NULL DEFAULT 0,
  account       BLOB NOT NULL DEFAULT x'',
  bundle_digest TEXT NOT NULL DEFAULT '',
  bundle_bytes  INTEGER NOT NULL DEFAULT 0,
  error_code    INTEGER NOT NULL DEFAULT 0,
  error_message TEXT NOT NULL DEFAULT ''
) STRICT;
-- Identical submissions in flight share one job: 1 = queued, 2 = running.
CREATE UNIQUE INDEX jobs_in_flight ON jobs (key) WHERE state IN (1, 2);

CREATE TABLE job_events (
  job_id  TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq     INTEGER NOT NULL CHECK (seq > 0),
  event   BLOB NOT NULL,
  PRIMARY KEY (job_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
  key           TEXT PRIMARY KEY CHECK (length(key) = 64),
  bundle_digest TEXT NOT NULL,
  bundle_bytes  INTEGER NOT NULL,
  account       BLOB NOT NULL,
  created_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  id             TEXT PRIMARY KEY,
  key            TEXT NOT NULL UNIQUE,
  kind           INTEGER NOT NULL CHECK (kind IN (1, 2)),
  device_kind    TEXT NOT NULL,
  requirement    TEXT NOT NULL,
  description    TEXT NOT NULL,
  payload_digest TEXT NOT NULL,
  payload_bytes  INTEGER NOT NULL,
  timeout_ms     INTEGER NOT NULL,
  threads        INTEGER NOT NULL,
  state          INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
  attempts       INTEGER NOT NULL CHECK (attempts >= 0),
  fence          INTEGER NOT NULL,
  worker         TEXT NOT NULL,
  result_digest  TEXT NOT NULL,
  evidence       TEXT NOT NULL,
  created_ms     INTEGER NOT NULL,
  updated_ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_unfinished ON tasks (state) WHERE state IN (1, 2);

CREATE TABLE workers (
  id                TEXT PRIMARY KEY,
  name              TEXT NOT NULL,
  device_kind       TEXT NOT NULL,
  fingerprint       TEXT NOT NULL,
  device_model_json TEXT NOT NULL,
  seen_ms           INTEGER NOT NULL
) STRICT;
CREATE INDEX workers_by_kind ON workers (device_kind, seen_ms);

-- Appended, never overwritten; the answer to a question is elected from all its rows.
CREATE TABLE measurements (
  id                 INTEGER PRIMARY KEY,
  question_key       TEXT NOT NULL,
  measurement_key    TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  description        TEXT NOT NULL,
  samples            INTEGER NOT NULL CHECK (samples > 0),
  min_ns             REAL NOT NULL CHECK (min_ns >= 0),
  median_ns          REAL NOT NULL CHECK (median_ns >= 0),
  p90_ns             REAL NOT NULL CHECK (p90_ns >= 0),
  samples_ns         BLOB NOT NULL,
  worker             TEXT NOT NULL,
  toolchain          TEXT NOT NULL,
  time_ms            INTEGER NOT NULL
) STRICT;
CREATE INDEX measurements_by_question ON measurements (question_key);

-- Binaries by what they were built from.
CREATE TABLE builds (
  key           TEXT PRIMARY KEY CHECK (length(key) = 64),
  binary_digest TEXT NOT NULL,
  created_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
