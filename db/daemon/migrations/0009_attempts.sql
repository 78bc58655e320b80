-- Earlier attempts of phases: those that were followed by another one. The last attempt is the row of the phase itself, so
-- that a phase that succeeds at once costs nothing here.

CREATE TABLE attempts (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,             -- failed, cancelled, completed, skipped; interrupted when its process ended
  error TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,                -- null when nobody saw the end
  PRIMARY KEY (run_id, position, attempt)
) WITHOUT ROWID;
