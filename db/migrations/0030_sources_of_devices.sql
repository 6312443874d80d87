-- Whose word a device's rates are, and whose a worker is: '' = one that is believed, as all from before.
ALTER TABLE devices ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN source TEXT NOT NULL DEFAULT '';
