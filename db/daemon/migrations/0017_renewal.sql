-- Which sub-runs stay of a map that evaluates its items again at a resume; null when none does.

ALTER TABLE phases ADD COLUMN renewal TEXT CHECK (renewal IN ('completed', 'failed'));
