-- Changes get their numbers when they are sent, so that newer runs need not wait behind an old backlog. The lines of logs
-- are not copied: each run knows how far its log was sent.

ALTER TABLE runs ADD COLUMN log_sent INTEGER NOT NULL DEFAULT 0;  -- the last log line that the hub has acknowledged
ALTER TABLE runs ADD COLUMN log_ended INTEGER NOT NULL DEFAULT 0; -- nothing more is written to the log of this attempt
ALTER TABLE runs ADD COLUMN log_due INTEGER NOT NULL DEFAULT 0;   -- the hub has not heard of all of the log

UPDATE runs SET log_sent = logged, log_ended = completed_at IS NOT NULL AND settled = 1;
UPDATE runs SET log_sent = ranges.first - 1, log_due = 1
FROM (SELECT run_id, min(json_extract(body, '$.from')) AS first FROM outbox WHERE kind = 'log' GROUP BY run_id) AS ranges
WHERE runs.id = ranges.run_id;

CREATE INDEX runs_log_due ON runs (root_id, tree_key) WHERE log_due = 1;
CREATE INDEX runs_log_open ON runs (id) WHERE synced = 1 AND log_ended = 0 AND completed_at IS NOT NULL;

ALTER TABLE outbox RENAME TO old_outbox;
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the commits
  root_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX outbox_trees ON outbox (root_id DESC, id);
INSERT INTO outbox (root_id, run_id, attempt, kind, body)
SELECT coalesce(runs.root_id, run_id), run_id, old_outbox.attempt, kind, body
FROM old_outbox LEFT JOIN runs ON runs.id = run_id WHERE kind <> 'log' ORDER BY seq;
DROP TABLE old_outbox;

-- Numbers begin again at 1, because they belong to the changes of another order.
DELETE FROM meta WHERE key = 'epoch';
