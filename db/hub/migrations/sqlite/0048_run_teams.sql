-- The teams that top runs had: lib/hub/reports/run-teams.ts. An OR IGNORE would not hold below an upsert.
CREATE TABLE run_teams (realm_id TEXT NOT NULL, team TEXT NOT NULL, PRIMARY KEY (realm_id, team)) WITHOUT ROWID;
--> statement-breakpoint
CREATE TRIGGER run_team_added AFTER INSERT ON runs
  WHEN new.run_id = new.root_run_id
    AND NOT EXISTS (SELECT 1 FROM run_teams WHERE realm_id = new.realm_id AND team = new.team) BEGIN
  INSERT INTO run_teams (realm_id, team) VALUES (new.realm_id, new.team);
END;
--> statement-breakpoint
CREATE TRIGGER run_team_changed AFTER UPDATE OF team ON runs
  WHEN new.run_id = new.root_run_id AND old.team <> new.team
    AND NOT EXISTS (SELECT 1 FROM run_teams WHERE realm_id = new.realm_id AND team = new.team) BEGIN
  INSERT INTO run_teams (realm_id, team) VALUES (new.realm_id, new.team);
END;
--> statement-breakpoint
INSERT INTO run_teams (realm_id, team) SELECT DISTINCT realm_id, team FROM runs WHERE run_id = root_run_id;
