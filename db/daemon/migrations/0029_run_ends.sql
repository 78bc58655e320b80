-- How a top run ended, as chains see it: once, however many of them follow it. Firings that were written before have the
-- run among their variables.

CREATE TABLE run_ends (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run TEXT NOT NULL                -- JSON: what expressions see
);

ALTER TABLE firings ADD COLUMN end_id INTEGER;
CREATE INDEX firings_end ON firings (end_id) WHERE end_id IS NOT NULL;

-- The ends that enabled chains follow: a row for each state.
CREATE VIEW followed AS
SELECT triggers.id, revision, paused, spec ->> '$.own.after' AS after, spec ->> '$.own.again' AS again, ends.value AS state
FROM triggers, json_each(spec, '$.own.on') AS ends
WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL;

DROP TRIGGER runs_chains;

CREATE TRIGGER runs_chains AFTER UPDATE OF completed_at ON runs
WHEN new.completed_at IS NOT NULL AND old.completed_at IS NULL AND new.parent_id IS NULL
  AND EXISTS (SELECT 1 FROM triggers WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL)
BEGIN
  -- The run as it is now: it may be resumed, or deleted, before its firings are looked at.
  INSERT INTO run_ends (run)
  SELECT json_object('run_id', new.id, 'team', new.team, 'version', new.version, 'state', new.state,
    'outputs', json(new.outputs), 'error', json(new.error),
    'started_by', json(coalesce(new.started_by, '{"kind":"unknown"}')))
  WHERE EXISTS (SELECT 1 FROM followed
    WHERE state = new.state AND after IN (new.team, substr(new.team, instr(new.team, '/') + 1))
      AND NOT EXISTS (SELECT 1 FROM firings
        WHERE trigger_id = followed.id AND occasion = iif(again, new.id || '/' || new.attempt, new.id)));

  INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, state, reason, detail, count, variables, end_id)
  SELECT
    -- A UUID of version 7, as every other id.
    lower(format('%08x-%04x-7%s-%s%s-%s', new.completed_at >> 16, new.completed_at & 65535, substr(hex(randomblob(2)), 2),
      substr('89ab', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2), hex(randomblob(6)))),
    id, revision, iif(again, new.id || '/' || new.attempt, new.id), new.completed_at, new.completed_at,
    iif(paused IS NULL, 'waiting', 'skipped'), iif(paused IS NULL, NULL, 'paused'),
    'paused by ' || (paused ->> 'by') || coalesce(': ' || (paused ->> 'reason'), ''), 1, '{}',
    (SELECT max(run_ends.id) FROM run_ends)
  FROM followed WHERE state = new.state AND after IN (new.team, substr(new.team, instr(new.team, '/') + 1))
  ON CONFLICT (trigger_id, occasion) DO NOTHING;
END;
