-- Finds the runs of a bundle: a bundle that no run needs is deleted, and its foreign key is checked then.

CREATE INDEX runs_bundle ON runs (bundle_id);
