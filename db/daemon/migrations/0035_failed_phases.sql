-- Failures are asked for by their state in trees of very many runs, most of which have none.

CREATE INDEX phases_failed ON phases (run_id) WHERE state = 'failed';
