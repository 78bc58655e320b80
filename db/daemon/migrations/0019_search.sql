-- The changes of runs that the index of searches (search.db) has not taken in: `run` is a rowid of runs. Whatever writes,
-- changes or deletes a run is noted here, whichever statement it is. The last row stays, so that `seq` only grows.

CREATE TABLE search_changes (
  seq INTEGER PRIMARY KEY,
  run INTEGER NOT NULL
);

CREATE TRIGGER runs_search_insert AFTER INSERT ON runs BEGIN
  INSERT INTO search_changes (run) VALUES (new.rowid);
END;

CREATE TRIGGER runs_search_update AFTER UPDATE OF state, error, inputs ON runs
WHEN new.state IS NOT old.state OR new.error IS NOT old.error OR new.inputs IS NOT old.inputs BEGIN
  INSERT INTO search_changes (run) VALUES (new.rowid);
END;

CREATE TRIGGER runs_search_delete AFTER DELETE ON runs BEGIN
  INSERT INTO search_changes (run) VALUES (old.rowid);
END;

CREATE TRIGGER phases_search_update AFTER UPDATE OF state ON phases WHEN new.state = 'failed' AND new.error IS NOT NULL BEGIN
  INSERT INTO search_changes (run) SELECT rowid FROM runs WHERE id = new.run_id;
END;
