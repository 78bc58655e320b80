-- The concurrency keys that top runs hold or wait for, until they end. A run of a team without a key has no row.

CREATE TABLE key_places (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which the runs came
  run_id TEXT NOT NULL UNIQUE REFERENCES runs (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  most INTEGER NOT NULL,           -- how many runs may hold the key at once, as the team of this run says
  when_full TEXT NOT NULL,         -- queue, skip, cancel_oldest
  holds INTEGER NOT NULL           -- 0: it waits
);
CREATE INDEX key_places_order ON key_places (key, holds, seq);
CREATE INDEX key_places_cancel ON key_places (key, seq) WHERE holds = 0 AND when_full = 'cancel_oldest';
