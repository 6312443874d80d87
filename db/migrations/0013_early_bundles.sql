-- The bundle that a job offered before it ended: its digest, its size and its key in `results`.
ALTER TABLE jobs ADD COLUMN early_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN early_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN early_key TEXT NOT NULL DEFAULT '';
