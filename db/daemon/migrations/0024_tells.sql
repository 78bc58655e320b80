-- What accounts are told that is about no run, such as an occasion of a trigger that was refused. What was delivered stays
-- for a while, so that the hub can ask for it twice.

CREATE TABLE tells (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,           -- agent:channel
  subject TEXT NOT NULL,           -- what it is about: the id of a trigger, or of the job by which the hub asked
  payload TEXT NOT NULL,           -- JSON {agent, entry, event}
  state TEXT NOT NULL,             -- pending, sent, delivered, failed, unknown
  error TEXT,
  at INTEGER NOT NULL,
  lived INTEGER NOT NULL           -- `at` in the lived time of the home, by which it is forgotten
) WITHOUT ROWID;
CREATE INDEX tells_open ON tells (at, id) WHERE state IN ('pending', 'sent');
CREATE INDEX tells_subject ON tells (subject, account, at);
CREATE INDEX tells_lived ON tells (lived);
