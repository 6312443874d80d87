-- What retention looks for: jobs by their key, and rows that are final by the time of their end.
CREATE INDEX jobs_by_key ON jobs (key);
CREATE INDEX jobs_final ON jobs (finished_ms) WHERE state > 2;
CREATE INDEX tasks_final ON tasks (updated_ms) WHERE state > 2;
