-- What searches look in of each run, and its trigrams: lib/hub/reports/run-texts.ts. The runs of a realm have numbers of
-- their own range, so that those of one realm are found among all. The texts of runs that are here already come later.
CREATE TABLE text_realms (number INTEGER PRIMARY KEY, realm_id TEXT NOT NULL UNIQUE);
CREATE TABLE run_texts (
  number INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE REFERENCES runs (run_id) ON DELETE CASCADE,
  text TEXT NOT NULL
);
CREATE VIRTUAL TABLE run_grams USING fts5 (text, content = 'run_texts', content_rowid = 'number', columnsize = 0, tokenize = 'trigram');
-- Merges come more rarely, and cost less, for which a search reads more parts of the index.
INSERT INTO run_grams (run_grams, rank) VALUES ('automerge', 16);
CREATE VIEW texts_of_runs (run_id, number, text) AS
  SELECT runs.run_id,
    coalesce((SELECT max(number) FROM run_texts WHERE number > r.number << 40 AND number < (r.number + 1) << 40), r.number << 40) + 1,
    lower(coalesce(runs.run_name, '') || char(1) || runs.team || char(1) || runs.run_id)
  FROM runs JOIN text_realms AS r ON r.realm_id = runs.realm_id;
CREATE TRIGGER realm_added AFTER INSERT ON realms BEGIN
  INSERT INTO text_realms (realm_id) VALUES (new.id);
END;
CREATE TRIGGER run_added AFTER INSERT ON runs BEGIN
  INSERT INTO run_texts (number, run_id, text) SELECT number, run_id, text FROM texts_of_runs WHERE run_id = new.run_id;
END;
CREATE TRIGGER run_renamed AFTER UPDATE OF run_name, team ON runs
  WHEN old.run_name IS NOT new.run_name OR old.team IS NOT new.team BEGIN
  UPDATE run_texts SET text = (SELECT text FROM texts_of_runs WHERE run_id = new.run_id) WHERE run_id = new.run_id;
END;
CREATE TRIGGER run_text_added AFTER INSERT ON run_texts BEGIN
  INSERT INTO run_grams (rowid, text) VALUES (new.number, new.text);
END;
CREATE TRIGGER run_text_removed AFTER DELETE ON run_texts BEGIN
  INSERT INTO run_grams (run_grams, rowid, text) VALUES ('delete', old.number, old.text);
END;
CREATE TRIGGER run_text_changed AFTER UPDATE OF text ON run_texts BEGIN
  INSERT INTO run_grams (run_grams, rowid, text) VALUES ('delete', old.number, old.text);
  INSERT INTO run_grams (rowid, text) VALUES (new.number, new.text);
END;
INSERT INTO text_realms (realm_id) SELECT id FROM realms;
CREATE TABLE run_text_fill (one INTEGER PRIMARY KEY, down_to TEXT);
INSERT INTO run_text_fill (one) SELECT 1 WHERE EXISTS (SELECT 1 FROM runs);
