-- Finds the runs of a bundle: a bundle that no run needs is deleted, and its foreign key is checked then.

CREATE INDEX runs_bundle ON runs (bundle_id);

-- Lists of runs by state count them without reading them.

CREATE INDEX runs_state ON runs (state);
