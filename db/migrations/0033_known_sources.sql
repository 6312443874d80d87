-- What the server has found out about each source of measurements (decision 83), so that a restart does not make it new.
-- awaiting: ids of undecided tasks on which it gave an opinion that is gone with the server, a line each.
CREATE TABLE sources (
  source TEXT NOT NULL PRIMARY KEY CHECK (source <> ''),
  strikes INTEGER NOT NULL CHECK (strikes >= 0),
  in_a_row INTEGER NOT NULL CHECK (in_a_row >= 0),
  batches INTEGER NOT NULL CHECK (batches >= 0),
  confirmed INTEGER NOT NULL CHECK (confirmed >= 0),
  caught INTEGER NOT NULL CHECK (caught >= 0),
  last TEXT NOT NULL,
  awaiting TEXT NOT NULL
) STRICT;

-- Imported rows from before have sources of which nothing is known yet.
INSERT INTO sources
  SELECT source, 0, 0, 0, 0, 0, '', '' FROM (
    SELECT source FROM measurements WHERE source <> '' AND standing = 4
    UNION SELECT source FROM plan_comparisons WHERE source <> '' AND standing = 4)
  WHERE NOT EXISTS (SELECT 1 FROM drained_workers WHERE quarantined = 1 AND (name = source OR 'imported/' || name = source));
