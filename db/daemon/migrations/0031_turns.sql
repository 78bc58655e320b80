-- Turns of phases with `repeat`, the last hundred of each. The last one goes on, or ended with its phase, unless
-- `completed_at` says when it ended because its condition did not hold.

CREATE TABLE turns (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  turn INTEGER NOT NULL,           -- from 1
  started_at INTEGER NOT NULL,
  completed_at INTEGER,
  PRIMARY KEY (run_id, position, turn)
) WITHOUT ROWID;
