-- The result of a task is kept for those that wait for it, and its rows are committed with its end.
ALTER TABLE tasks DROP COLUMN result_digest;
