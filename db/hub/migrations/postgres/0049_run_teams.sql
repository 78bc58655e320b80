-- optional: an engine that lacks something of it knows the teams of the newest runs only.
-- The teams that top runs had: lib/hub/reports/run-teams.ts. In one order, so that two reports do not wait for each other.
CREATE TABLE run_teams (realm_id text NOT NULL, team text NOT NULL, PRIMARY KEY (realm_id, team));--> statement-breakpoint
CREATE FUNCTION add_run_teams() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_teams (realm_id, team)
    SELECT DISTINCT realm_id, team FROM added
    WHERE run_id = root_run_id
      AND NOT EXISTS (SELECT 1 FROM run_teams AS t WHERE t.realm_id = added.realm_id AND t.team = added.team)
    ORDER BY realm_id, team
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;--> statement-breakpoint
CREATE FUNCTION put_run_team() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_teams (realm_id, team) VALUES (new.realm_id, new.team) ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER run_teams_added AFTER INSERT ON runs REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION add_run_teams();--> statement-breakpoint
CREATE TRIGGER run_team_changed AFTER UPDATE ON runs FOR EACH ROW
  WHEN (new.run_id = new.root_run_id AND old.team <> new.team) EXECUTE FUNCTION put_run_team();--> statement-breakpoint
INSERT INTO run_teams (realm_id, team) SELECT DISTINCT realm_id, team FROM runs WHERE run_id = root_run_id;
