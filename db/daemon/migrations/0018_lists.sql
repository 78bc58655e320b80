-- Lists of runs read an index of their filters in the order of the list, the newest id first. A top run is told from a
-- sub-run in the index, because a list is either of both or of top runs only. A run that changes is in one index, and
-- comes into those of each filter when it ends: so these are written once in its life, not with each of its states.

DROP INDEX runs_state;
CREATE INDEX runs_open_by_state ON runs (state, parent_id IS NULL, id) WHERE completed_at IS NULL;
CREATE INDEX runs_by_state ON runs (state, parent_id IS NULL, id) WHERE completed_at IS NOT NULL;
CREATE INDEX runs_by_team ON runs (team, parent_id IS NULL, state, id) WHERE completed_at IS NOT NULL;

-- Runs that began more than a minute after the time in their id: they waited, or were resumed. A list of runs that began
-- since a moment is of the ids since then, and of these.
CREATE INDEX runs_late ON runs (started_at)
  WHERE id < format('%08x-%04x', (started_at - 60000) >> 16, (started_at - 60000) & 65535);

-- The teams that used a workspace, and the runs that are old enough to be deleted.
CREATE INDEX runs_top_by_workspace ON runs (workspace, team) WHERE parent_id IS NULL;
CREATE INDEX runs_top_by_end ON runs (completed_at, id) WHERE parent_id IS NULL AND completed_at IS NOT NULL;
