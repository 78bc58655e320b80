-- A phase that fails is noted for the index of searches by its error, so that starts and completions of phases, which leave
-- the error as it is, call no trigger: it was a third of what they cost.

DROP TRIGGER phases_search_update;

CREATE TRIGGER phases_search_update AFTER UPDATE OF error ON phases WHEN new.state = 'failed' AND new.error IS NOT NULL BEGIN
  INSERT INTO search_changes (run)
  SELECT rowid FROM runs WHERE id = new.run_id AND rowid <= (SELECT run FROM search_upto);
END;
