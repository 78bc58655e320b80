-- What has started a run says so for ever: no statement may give its occasion to another outcome, or to another run.

CREATE TRIGGER firings_started_is_final BEFORE UPDATE OF state, run_id ON firings
WHEN old.state = 'started' AND (new.state <> 'started' OR new.run_id IS NOT old.run_id)
BEGIN
  SELECT RAISE(ABORT, 'a firing that has started is final');
END;
