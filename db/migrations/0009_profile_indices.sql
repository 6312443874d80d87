-- No question that the server asks while it compiles scans `measurements`.
CREATE TABLE device_counts (
  fingerprint  TEXT PRIMARY KEY,
  measurements INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO device_counts SELECT device_fingerprint, COUNT(*) FROM measurements GROUP BY device_fingerprint;
CREATE TRIGGER measurements_counted AFTER INSERT ON measurements BEGIN
  INSERT INTO device_counts VALUES (NEW.device_fingerprint, 1)
    ON CONFLICT (fingerprint) DO UPDATE SET measurements = measurements + 1;
END;
CREATE TRIGGER measurements_uncounted AFTER DELETE ON measurements BEGIN
  UPDATE device_counts SET measurements = measurements - 1 WHERE fingerprint = OLD.device_fingerprint;
END;
DROP INDEX measurements_by_question;
CREATE INDEX measurements_by_question ON measurements (question_key, median_ns);
CREATE INDEX measurements_by_device ON measurements (device_fingerprint, question_key, median_ns, model_ns)
  WHERE model_ns > 0;
