-- Attempts are compilations whose process died, no longer starts that ended with the server.
UPDATE jobs SET attempts = 0;
