-- The model of each kind of device that planning uses, whatever a later one of that fingerprint measured of itself.
CREATE TABLE devices (
  fingerprint TEXT PRIMARY KEY,
  model_json  TEXT NOT NULL,
  time_ms     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
