-- Watches: what was seen of each file, which is written with the firing that reports it.

CREATE TABLE watch_seen (
  trigger_id TEXT NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
  path TEXT NOT NULL,              -- in the folder
  identity TEXT NOT NULL,          -- <bytes>-<mtime in ns>-<inode>
  sha256 TEXT,                     -- of a watch that tells files apart by their content
  gone_at INTEGER,                 -- since when it is not there: what comes back unchanged is not new
  reported TEXT,                   -- JSON: when it was last reported, by which a team is noticed that feeds itself
  PRIMARY KEY (trigger_id, path)
) WITHOUT ROWID;
CREATE INDEX watch_seen_gone ON watch_seen (gone_at) WHERE gone_at IS NOT NULL;

-- Files that are moved away for a run which has not begun.
CREATE TABLE watch_claims (
  firing_id TEXT PRIMARY KEY REFERENCES firings (id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  files TEXT NOT NULL              -- JSON [{from, to, bytes, mtime}]
) WITHOUT ROWID;

CREATE INDEX triggers_watches ON triggers (id) WHERE kind = 'watch' AND enabled = 1 AND removed_at IS NULL;
