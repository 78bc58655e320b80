-- The jobs that this daemon has taken from its hub, until the hub has heard what became of them. A dispatched run is
-- `held` until the hub has confirmed that it belongs to this daemon; nothing of it executes before.

CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  lease_id TEXT NOT NULL,          -- of the last delivery
  kind TEXT NOT NULL,
  run_id TEXT NOT NULL,
  payload TEXT NOT NULL,           -- JSON, masked
  run_attempt INTEGER,             -- of the run when the job came, if the run was here
  state TEXT NOT NULL,             -- held, begun, done, failed
  error TEXT,
  taken_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_of_run ON jobs (run_id);
