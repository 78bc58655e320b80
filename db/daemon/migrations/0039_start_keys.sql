-- The idempotency keys with which runs were started, as long as their runs are kept. `key` is a hash: `mark` is made with
-- the key itself, and says what was asked for.
CREATE TABLE start_keys (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  mark TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (caller, key)
) WITHOUT ROWID;
CREATE INDEX start_keys_run ON start_keys (run_id);
