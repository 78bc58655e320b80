-- Files of synced runs that the hub has not stored yet. A row is written with the change that reports the file.

CREATE TABLE uploads (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  path TEXT NOT NULL,              -- below the state folder: files/<phase>/<name>
  bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  after_change INTEGER NOT NULL,   -- the row of the outbox that must have reached the hub first
  failures INTEGER NOT NULL,
  due_at INTEGER NOT NULL,         -- not before
  PRIMARY KEY (run_id, path)
) WITHOUT ROWID;
CREATE INDEX uploads_due ON uploads (due_at);
