-- optional: an engine that lacks something of it reads all runs for a search.
-- What searches look in of each run, and its trigrams: lib/hub/reports/run-texts.ts. The realm stands among them. The texts of
-- runs that are here already come later. A statement of many runs is one call of a trigger, and no row of them is looked up or
-- locked, as a foreign key would do.
CREATE TABLE run_texts (run_id text PRIMARY KEY, realm_id text NOT NULL, text text NOT NULL);--> statement-breakpoint
CREATE FUNCTION run_grams(realm_id text, run_text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_to_tsvector(array_append(array_agg(DISTINCT substr($2, n, 3)), chr(1) || $1)) FROM generate_series(1, length($2)) AS n
$$;--> statement-breakpoint
CREATE INDEX run_texts_grams ON run_texts USING gin (run_grams(realm_id, text)) WITH (gin_pending_list_limit = 512);--> statement-breakpoint
CREATE FUNCTION text_of_run(run_name text, team text, run_id text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT left(lower(coalesce($1, '') || chr(1) || $2 || chr(1) || $3), 8000)
$$;--> statement-breakpoint
CREATE FUNCTION add_run_texts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_texts (run_id, realm_id, text) SELECT run_id, realm_id, text_of_run(run_name, team, run_id) FROM added;
  RETURN NULL;
END
$$;--> statement-breakpoint
CREATE FUNCTION put_run_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE run_texts SET text = text_of_run(new.run_name, new.team, new.run_id) WHERE run_id = new.run_id;
  RETURN NULL;
END
$$;--> statement-breakpoint
CREATE FUNCTION remove_run_texts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_texts WHERE run_id IN (SELECT run_id FROM removed);
  RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER runs_added AFTER INSERT ON runs REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION add_run_texts();--> statement-breakpoint
CREATE TRIGGER run_renamed AFTER UPDATE ON runs FOR EACH ROW
  WHEN (old.run_name IS DISTINCT FROM new.run_name OR old.team <> new.team) EXECUTE FUNCTION put_run_text();--> statement-breakpoint
CREATE TRIGGER runs_removed AFTER DELETE ON runs REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION remove_run_texts();--> statement-breakpoint
CREATE TABLE run_text_fill (one integer PRIMARY KEY, down_to text);--> statement-breakpoint
INSERT INTO run_text_fill (one) SELECT 1 WHERE EXISTS (SELECT 1 FROM runs);
