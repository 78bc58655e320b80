-- The place in a trace of the call that started a top run, as the header `traceparent` has it; null where its trace begins
-- with the run.
ALTER TABLE runs ADD COLUMN traceparent TEXT;
