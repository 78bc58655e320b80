-- What lists ask of a run that never changes: its team, whether it is a top run, and the kind and name of what started it.
-- A run has the number of its group, so that lists by any of these read one index. There was an index for each of five
-- combinations, and they were a quarter of all pages that a short run writes.

CREATE TABLE run_groups (
  id INTEGER PRIMARY KEY,
  team TEXT NOT NULL,
  is_top INTEGER NOT NULL,
  starter TEXT NOT NULL,      -- empty for sub-runs
  starter_name TEXT NOT NULL, -- empty where there is none
  UNIQUE (team, is_top, starter, starter_name)
);

INSERT INTO run_groups (team, is_top, starter, starter_name)
SELECT DISTINCT
  team,
  parent_id IS NULL,
  iif(parent_id IS NULL, coalesce(started_by ->> 'kind', 'unknown'), ''),
  coalesce(started_by ->> 'name', started_by ->> 'identity', started_by ->> 'by', '')
FROM runs;

ALTER TABLE runs ADD COLUMN group_id INTEGER;
UPDATE runs SET group_id = (
  SELECT run_groups.id FROM run_groups
  WHERE run_groups.team = runs.team AND is_top = (parent_id IS NULL)
    AND starter = iif(parent_id IS NULL, coalesce(started_by ->> 'kind', 'unknown'), '')
    AND starter_name = coalesce(started_by ->> 'name', started_by ->> 'identity', started_by ->> 'by', ''));

DROP INDEX runs_by_team;
DROP INDEX runs_by_starter_kind;
DROP INDEX runs_by_starter;
DROP INDEX runs_by_team_starter_kind;
DROP INDEX runs_by_team_starter;
CREATE INDEX runs_by_group ON runs (group_id, state, id) WHERE completed_at IS NOT NULL;

-- Only the oldest ends are looked for, and a row has its number anyway.
DROP INDEX runs_top_by_end;
CREATE INDEX runs_top_by_end ON runs (completed_at) WHERE parent_id IS NULL AND completed_at IS NOT NULL;
