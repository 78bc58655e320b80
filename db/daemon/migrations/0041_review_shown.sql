-- What the commands of a gate printed and wrote, as JSON, for whoever answers the review of the gate.
ALTER TABLE reviews ADD COLUMN shown TEXT;
