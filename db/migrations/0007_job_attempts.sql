-- Starts of a job that ended neither with the job nor with an orderly stop of the server.
ALTER TABLE jobs ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0);
