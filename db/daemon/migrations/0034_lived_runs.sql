-- How long the ended attempts of a run took, in lived milliseconds; null for a run from before this was counted.
ALTER TABLE runs ADD COLUMN lived_ms INTEGER;
-- The lived time at which the attempt began that goes on; null when none does.
ALTER TABLE runs ADD COLUMN lived_since INTEGER;
