-- Who did what on this home. An entry is written in the transaction of what it tells, and sealed into the chain of the
-- home soon afterwards (lib/audit-chain.ts).

CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,             -- local:<user of the machine>, hub:<user of the hub>
  action TEXT NOT NULL,            -- the route, such as runs/start
  target TEXT,
  seq INTEGER UNIQUE,              -- the number in the chain; null until it is sealed
  hash TEXT
);
CREATE INDEX audit_at ON audit (at, id);
CREATE INDEX audit_action ON audit (action, at, id);

-- The chain: its last entry, and the last one that retention has removed.
CREATE TABLE audit_chain (
  chain TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL,
  anchor_seq INTEGER NOT NULL,
  anchor_hash TEXT NOT NULL,
  anchor_at INTEGER
) WITHOUT ROWID;
