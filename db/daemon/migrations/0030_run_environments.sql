-- The environment of settings.yml whose settings and secrets a run has; null for the plain ones.
ALTER TABLE runs ADD COLUMN environment TEXT;
