-- Top runs whose deletion has begun. A tree is deleted in parts, so one of which only a part is left has a row here: it
-- cannot be resumed, and its deletion goes on at the next start. The row goes with the top run, which is deleted last.

CREATE TABLE deletions (
  run_id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE
) WITHOUT ROWID;
