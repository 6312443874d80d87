-- By which join token a worker got its own ('': by none, or before this was kept), and how many workers a join token may
-- bring (0: without a limit, as those from before).
ALTER TABLE tokens ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN most_joins INTEGER NOT NULL DEFAULT 0 CHECK (most_joins >= 0);
