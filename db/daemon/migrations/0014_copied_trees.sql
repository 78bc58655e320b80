-- Trees that had not ended when this home was found to be a copy of another place (lib/daemon/place.ts). The home that it
-- was copied from may have gone on with them, so what they write once is in doubt, whether there is a receipt or not.

CREATE TABLE copied_trees (
  root_id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  found_at INTEGER NOT NULL,
  last_row INTEGER NOT NULL,       -- the last row of runs then: what came later is not known at the other place
  held INTEGER NOT NULL            -- 1 until a person resumes the run
) WITHOUT ROWID;

-- The entries whose doubt was raised. It is raised once: afterwards the receipt, or a person, says what is true.
CREATE TABLE copied_doubts (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (run_id, position, entry)
) WITHOUT ROWID;
