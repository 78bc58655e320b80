-- Runs above the number in `search_upto`, a rowid of runs, are not in the index of searches (search.db), which comes to them
-- by their numbers: their changes need no note. What is indexed raises it first. Most runs begin and end above it.

CREATE TABLE search_upto (
  run INTEGER NOT NULL
);
INSERT INTO search_upto (run) VALUES (0);

DROP TRIGGER runs_search_insert;
DROP TRIGGER runs_search_update;
DROP TRIGGER runs_search_delete;
DROP TRIGGER phases_search_update;

-- A run takes the number of the one before, when that was the last one and was deleted.
CREATE TRIGGER runs_search_insert AFTER INSERT ON runs WHEN new.rowid <= (SELECT run FROM search_upto) BEGIN
  INSERT INTO search_changes (run) VALUES (new.rowid);
END;

CREATE TRIGGER runs_search_update AFTER UPDATE OF state, error, inputs ON runs
WHEN (new.state IS NOT old.state OR new.error IS NOT old.error OR new.inputs IS NOT old.inputs)
  AND new.rowid <= (SELECT run FROM search_upto) BEGIN
  INSERT INTO search_changes (run) VALUES (new.rowid);
END;

CREATE TRIGGER runs_search_delete AFTER DELETE ON runs WHEN old.rowid <= (SELECT run FROM search_upto) BEGIN
  INSERT INTO search_changes (run) VALUES (old.rowid);
END;

CREATE TRIGGER phases_search_update AFTER UPDATE OF state ON phases WHEN new.state = 'failed' AND new.error IS NOT NULL BEGIN
  INSERT INTO search_changes (run)
  SELECT rowid FROM runs WHERE id = new.run_id AND rowid <= (SELECT run FROM search_upto);
END;
