-- `why` asks what failed and what was written anywhere below a run: of the runs of a large tree, few have failed, have
-- passed a failure over, or have written.

ALTER TABLE runs ADD COLUMN has_failed INTEGER; -- 1 once one of its phases has failed, in whatever attempt
ALTER TABLE runs ADD COLUMN has_written INTEGER; -- 1 once it has had a receipt

UPDATE runs SET has_failed = 1 WHERE id IN (SELECT run_id FROM phases WHERE state = 'failed');
UPDATE runs SET has_written = 1 WHERE id IN (SELECT run_id FROM receipts);

DROP INDEX phases_failed;
CREATE INDEX runs_failed ON runs (root_id, tree_key) WHERE state = 'failed';
CREATE INDEX runs_has_failed ON runs (root_id, tree_key) WHERE has_failed = 1;
CREATE INDEX runs_has_written ON runs (root_id, tree_key) WHERE has_written = 1;

CREATE TRIGGER receipts_written AFTER INSERT ON receipts BEGIN
  UPDATE runs SET has_written = 1 WHERE id = new.run_id AND has_written IS NULL;
END;
