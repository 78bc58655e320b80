-- The end of a top run is an occasion of each chain that follows its team. A trigger of the database writes it, so that it
-- stands in the transaction that ends the run, whichever statement ends it. The firing waits for a process that serves.

CREATE INDEX triggers_chains ON triggers (id) WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL;

-- Triggers that a team.yml declares, whose files are looked at.
CREATE INDEX triggers_declared ON triggers (id) WHERE source <> '"manual"' AND enabled = 1 AND removed_at IS NULL;

CREATE TRIGGER runs_chains AFTER UPDATE OF completed_at ON runs
WHEN new.completed_at IS NOT NULL AND old.completed_at IS NULL AND new.parent_id IS NULL
  AND EXISTS (SELECT 1 FROM triggers WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL)
BEGIN
  INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, state, reason, detail, count, variables)
  SELECT
    -- A UUID of version 7, as every other id.
    lower(format('%08x-%04x-7%s-%s%s-%s', new.completed_at >> 16, new.completed_at & 65535, substr(hex(randomblob(2)), 2),
      substr('89ab', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2), hex(randomblob(6)))),
    id, revision,
    CASE WHEN spec ->> '$.own.again' THEN new.id || '/' || new.attempt ELSE new.id END,
    new.completed_at, new.completed_at,
    iif(paused IS NULL, 'waiting', 'skipped'),
    iif(paused IS NULL, NULL, 'paused'),
    'paused by ' || (paused ->> 'by') || coalesce(': ' || (paused ->> 'reason'), ''),
    1,
    -- The run as it is now: it may be resumed, or deleted, before the firing is looked at.
    json_object('run', json_object('run_id', new.id, 'team', new.team, 'version', new.version, 'state', new.state,
      'outputs', json(new.outputs), 'error', json(new.error),
      'started_by', json(coalesce(new.started_by, '{"kind":"unknown"}'))))
  FROM triggers
  WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL
    AND spec ->> '$.own.after' IN (new.team, substr(new.team, instr(new.team, '/') + 1))
    AND EXISTS (SELECT 1 FROM json_each(spec, '$.own.on') WHERE value = new.state)
  ON CONFLICT (trigger_id, occasion) DO NOTHING;
END;
