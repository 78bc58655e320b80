-- Who or what started a top run, as JSON; null for sub-runs, and for top runs from before this was recorded. Lists read it
-- in the order of their ids, with the other filters before them. Sub-runs and open runs are in none of
-- these indexes.

ALTER TABLE runs ADD COLUMN started_by TEXT;

CREATE INDEX runs_by_starter_kind ON runs (coalesce(started_by ->> 'kind', 'unknown'), state, id)
  WHERE parent_id IS NULL AND completed_at IS NOT NULL;
CREATE INDEX runs_by_starter ON runs (
  coalesce(started_by ->> 'kind', 'unknown'),
  coalesce(started_by ->> 'name', started_by ->> 'identity', started_by ->> 'by'), state, id
) WHERE parent_id IS NULL AND completed_at IS NOT NULL;
CREATE INDEX runs_by_team_starter_kind ON runs (team, coalesce(started_by ->> 'kind', 'unknown'), state, id)
  WHERE parent_id IS NULL AND completed_at IS NOT NULL;
CREATE INDEX runs_by_team_starter ON runs (
  team, coalesce(started_by ->> 'kind', 'unknown'),
  coalesce(started_by ->> 'name', started_by ->> 'identity', started_by ->> 'by'), state, id
) WHERE parent_id IS NULL AND completed_at IS NOT NULL;
