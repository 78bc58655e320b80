-- What a daemon knows of its runs. JSON columns hold what was recorded, already masked.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- A team with all that it can reach, frozen; many runs share one.
CREATE TABLE bundles (
  id TEXT PRIMARY KEY,
  json TEXT NOT NULL
);

CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  root_id TEXT NOT NULL,
  tree_key TEXT NOT NULL,          -- sorts the tree depth first: phase index and item index of every step from the root
  parent_id TEXT,
  parent_position INTEGER,
  parent_phase TEXT,
  item INTEGER,                    -- index in the parent's map
  run_name TEXT,
  call_path TEXT NOT NULL,
  call_depth INTEGER NOT NULL,
  bundle_id TEXT NOT NULL REFERENCES bundles (id),
  team_key TEXT NOT NULL,
  team TEXT NOT NULL,
  version TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  error TEXT,
  inputs TEXT NOT NULL,
  outputs TEXT,
  workspace TEXT,
  from_path INTEGER NOT NULL,      -- started on loopback from a path: may read outside, literal URLs pass the guard
  synced INTEGER NOT NULL,         -- its tree is reported to the hub
  attempt INTEGER NOT NULL,
  ending TEXT,                     -- JSON {state, reason}: asked to end, not there yet
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  deadline INTEGER,                -- the team's timeout, while the clock runs
  time_left INTEGER,               -- the same while a person is asked, in milliseconds
  logged INTEGER NOT NULL DEFAULT 0 -- the last log line that stands in the outbox
);
CREATE UNIQUE INDEX runs_tree ON runs (root_id, tree_key);
CREATE INDEX runs_children ON runs (parent_id, parent_position, item) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_open ON runs (root_id, tree_key) WHERE completed_at IS NULL;
CREATE INDEX runs_roots ON runs (id) WHERE parent_id IS NULL;

CREATE TABLE phases (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  attempt INTEGER NOT NULL,
  failures INTEGER NOT NULL,       -- retryable ones so far
  due_at INTEGER,                  -- not before, while it waits for its next attempt
  started_at INTEGER,
  completed_at INTEGER,
  error TEXT,
  text TEXT,
  data TEXT,
  files TEXT,
  PRIMARY KEY (run_id, position)
) WITHOUT ROWID;

-- The items of a map, frozen when they were first evaluated.
CREATE TABLE items (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  item INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run_id, position, item)
) WITHOUT ROWID;

-- The ledger: one row for each write to the outside that must not happen twice.
CREATE TABLE receipts (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  entry TEXT NOT NULL,
  state TEXT NOT NULL,             -- sent, done, unknown
  attempt INTEGER NOT NULL,
  result TEXT,
  external_id TEXT,
  external_url TEXT,
  sent_at INTEGER NOT NULL,
  done_at INTEGER,
  PRIMARY KEY (run_id, position, entry)
) WITHOUT ROWID;
CREATE INDEX receipts_open ON receipts (state) WHERE state <> 'done';

-- Questions to people: gates and escalations.
CREATE TABLE reviews (
  id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL,
  reason TEXT NOT NULL,
  prompt TEXT NOT NULL,
  entries TEXT NOT NULL,
  state TEXT NOT NULL,
  decision TEXT,
  decided_by TEXT,
  comment TEXT,
  input TEXT,                      -- JSON: what the person filled in
  deadline INTEGER,
  created_at INTEGER NOT NULL,
  decided_at INTEGER,
  UNIQUE (run_id, position, attempt)
);
CREATE INDEX reviews_open ON reviews (created_at) WHERE state = 'pending';

-- What listeners were asked to send.
CREATE TABLE deliveries (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  listener TEXT NOT NULL,
  event TEXT NOT NULL,
  payload TEXT NOT NULL,
  state TEXT NOT NULL,             -- pending, sent, delivered, failed, unknown
  error TEXT,
  PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
CREATE INDEX deliveries_open ON deliveries (run_id) WHERE state IN ('pending', 'sent');

-- Changes that the hub has not acknowledged yet.
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
);

CREATE TABLE workspaces (
  id TEXT PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
