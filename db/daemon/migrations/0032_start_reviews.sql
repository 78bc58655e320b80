-- Who may approve a top run before anything of it begins, as a JSON list of names; null when nobody is asked.
ALTER TABLE runs ADD COLUMN review TEXT;
