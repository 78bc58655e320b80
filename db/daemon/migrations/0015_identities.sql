-- By what a vendor knows an entry of a phase, such as an id that it gave out beforehand. It is written before the entry is
-- sent and outlasts the receipt, so that every repetition has the same one.

CREATE TABLE identities (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  entry TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run_id, position, entry)
) WITHOUT ROWID;
