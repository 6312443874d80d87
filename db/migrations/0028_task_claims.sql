-- Until when a worker has a task that it claimed, by the machine's steady clock (milliseconds); 0: nobody has it.
ALTER TABLE tasks ADD COLUMN lease_until_ms INTEGER NOT NULL DEFAULT 0;
