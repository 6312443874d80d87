-- When a worker is drained: from this moment until that one (Unix milliseconds; 0: at once, and until it is released).
ALTER TABLE drained_workers ADD COLUMN from_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE drained_workers ADD COLUMN until_ms INTEGER NOT NULL DEFAULT 0;
