-- What another system is still to be asked about entries that were in doubt. `call` has the agent, the action and the
-- entry, encrypted. `looked` counts the looks since the end of the run. The next one is due after a time that grows from
-- `settles` milliseconds, since `since`, a moment of the boot `boot`. `confirmed` is 1 once one of them has shown the write.

CREATE TABLE looks (
  run_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  entry TEXT NOT NULL,
  call BLOB NOT NULL,
  settles INTEGER NOT NULL,
  looked INTEGER NOT NULL DEFAULT 0,
  confirmed INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  boot TEXT,
  since INTEGER,
  PRIMARY KEY (run_id, position, entry),
  FOREIGN KEY (run_id, position, entry) REFERENCES receipts (run_id, position, entry) ON DELETE CASCADE
) WITHOUT ROWID;
