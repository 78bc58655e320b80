-- How many failures a completed run passed over, in it and below it; null for every other run. Of the runs from before this
-- was counted, those have it that passed over any.
ALTER TABLE runs ADD COLUMN tolerated INTEGER;

-- Goes up from each failure through all completed runs, as far as each is below a completed phase.
WITH RECURSIVE
  counted (id, parent_id) AS NOT MATERIALIZED (
    SELECT child.id, child.parent_id FROM runs AS child
      JOIN phases ON phases.run_id = child.parent_id AND phases.position = child.parent_position AND phases.state = 'completed'
      JOIN runs AS parent ON parent.id = child.parent_id AND parent.state = 'completed'
    WHERE CASE WHEN total IS NULL THEN child.item = coalesce((SELECT max(turn) FROM turns
        WHERE turns.run_id = phases.run_id AND turns.position = phases.position), 1) - 1 ELSE child.item < total END),
  passed (id) AS (
    SELECT runs.id FROM runs INDEXED BY runs_has_failed CROSS JOIN phases ON phases.run_id = runs.id AND phases.state = 'failed'
      WHERE has_failed = 1 AND runs.state = 'completed'
    UNION ALL SELECT counted.parent_id FROM runs AS failed INDEXED BY runs_failed JOIN counted ON counted.id = failed.id
      WHERE failed.state = 'failed'
    UNION ALL SELECT counted.parent_id FROM passed JOIN counted ON counted.id = passed.id)
UPDATE runs SET tolerated = times FROM (SELECT id, count(*) AS times FROM passed GROUP BY id) AS found WHERE found.id = runs.id;
