-- Rules that start runs. `spec` is all that a person may change, as JSON. A trigger that was removed keeps its row for as
-- long as its firings are kept, so that a run can say what started it.

CREATE TABLE triggers (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  spec TEXT NOT NULL,
  revision INTEGER NOT NULL,
  source TEXT NOT NULL,            -- JSON: "manual", or the team, version and name in its `triggers:`
  enabled INTEGER NOT NULL,
  paused TEXT,                     -- JSON {since, by, reason}
  problem TEXT,                    -- JSON {reason, text, since}: it is broken
  cursor INTEGER NOT NULL,         -- the occasions up to here were looked at; of schedules
  next_at INTEGER,                 -- when the next one is due; null while none can be
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  removed_at INTEGER
);
CREATE UNIQUE INDEX triggers_name ON triggers (name) WHERE removed_at IS NULL;
CREATE INDEX triggers_next ON triggers (next_at) WHERE next_at IS NOT NULL;
-- Where the clock is behind the cursor, it was ahead before.
CREATE INDEX triggers_cursor ON triggers (cursor)
  WHERE kind = 'schedule' AND enabled = 1 AND paused IS NULL AND removed_at IS NULL;

-- One occasion each, started or not, written with the run that it starts. The unique key is what makes an occasion start
-- at most one run.
CREATE TABLE firings (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  trigger_id TEXT NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  occasion TEXT NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER,                   -- the last slot of a row that stands for several
  seen_at INTEGER NOT NULL,
  started_at INTEGER,
  state TEXT NOT NULL,
  reason TEXT,
  detail TEXT,
  run_id TEXT,
  count INTEGER NOT NULL,
  late_ms INTEGER,
  manual TEXT,                     -- JSON {by}
  deliveries INTEGER,              -- how often the delivery of a hook came
  variables TEXT NOT NULL,         -- JSON: what expressions see
  UNIQUE (trigger_id, occasion)
);
CREATE INDEX firings_by_trigger ON firings (trigger_id, seq);
CREATE INDEX firings_waiting ON firings (trigger_id, seq) WHERE state = 'waiting';
CREATE INDEX firings_started ON firings (trigger_id, started_at) WHERE started_at IS NOT NULL;
CREATE INDEX firings_by_run ON firings (run_id) WHERE run_id IS NOT NULL;

-- The addresses of hooks, which stay the same for as long as there is the hook.
CREATE TABLE hooks (
  trigger_id TEXT PRIMARY KEY REFERENCES triggers (id) ON DELETE CASCADE,
  token TEXT NOT NULL UNIQUE
) WITHOUT ROWID;

-- Their secrets, sealed with the key of the home.
CREATE TABLE hook_secrets (
  id TEXT PRIMARY KEY,
  trigger_id TEXT NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
);
CREATE INDEX hook_secrets_by_trigger ON hook_secrets (trigger_id);

-- What senders sent: the query and the body, sealed. A firing that waits has its own in any case.
CREATE TABLE hook_bodies (
  firing_id TEXT PRIMARY KEY REFERENCES firings (id) ON DELETE CASCADE,
  sealed BLOB NOT NULL,
  delete_at INTEGER                -- null: it is kept only while the firing waits
);
CREATE INDEX hook_bodies_by_age ON hook_bodies (delete_at);
