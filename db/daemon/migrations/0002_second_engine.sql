-- Clocks are rows, maps know when their items are complete, and small files are as durable as the result that names them.

ALTER TABLE phases ADD COLUMN deadline INTEGER;      -- of a team or map phase with a timeout, while its clock runs
ALTER TABLE phases ADD COLUMN time_left INTEGER;     -- the same while all that goes on in it waits for a person, in milliseconds
ALTER TABLE phases ADD COLUMN total INTEGER;         -- items of a map, once all of them are frozen
UPDATE phases SET total = (SELECT count(*) FROM items WHERE items.run_id = phases.run_id AND items.position = phases.position)
WHERE EXISTS (SELECT 1 FROM items WHERE items.run_id = phases.run_id AND items.position = phases.position);

ALTER TABLE items ADD COLUMN folder TEXT;            -- where the item's files lie, below files/<phase>/

ALTER TABLE runs ADD COLUMN handed TEXT;             -- JSON {outputs, files}: what the run above got, once its files are there
ALTER TABLE runs ADD COLUMN settled INTEGER NOT NULL DEFAULT 0; -- of a top run: its end has been followed by all that it calls for
UPDATE runs SET settled = 1 WHERE parent_id IS NOT NULL OR completed_at IS NOT NULL;

CREATE INDEX runs_unsettled ON runs (id) WHERE parent_id IS NULL AND completed_at IS NOT NULL AND settled = 0;
CREATE INDEX runs_due ON runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX phases_retry ON phases (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX phases_due ON phases (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX reviews_due ON reviews (deadline) WHERE state = 'pending' AND deadline IS NOT NULL;

-- Bytes of small artifacts that the file system has not been asked to keep yet.
CREATE TABLE small_files (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  bytes BLOB NOT NULL,
  written_at INTEGER NOT NULL,
  UNIQUE (run_id, path)
);
