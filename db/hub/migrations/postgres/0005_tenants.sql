CREATE TABLE "scope_slugs" (
	"slug" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
INSERT INTO scope_slugs (slug) SELECT slug FROM scopes
  UNION SELECT target FROM audit WHERE action = 'scopes/create' AND target IS NOT NULL
  UNION SELECT split_part(substr(team, 2), '/', 1) FROM realm_teams;--> statement-breakpoint
ALTER TABLE "realm_teams" ADD COLUMN "scope_id" bigint;--> statement-breakpoint
ALTER TABLE "realm_teams" ADD COLUMN "added_by" bigint;--> statement-breakpoint
UPDATE realm_teams SET scope_id = (SELECT id FROM scopes WHERE slug = split_part(substr(team, 2), '/', 1)),
  added_by = (SELECT user_id FROM audit WHERE action = 'realms/add_team' AND audit.realm_id = realm_teams.realm_id AND target = realm_teams.team
    ORDER BY id DESC LIMIT 1);--> statement-breakpoint
DELETE FROM realm_teams WHERE scope_id IS NULL;--> statement-breakpoint
ALTER TABLE "realm_teams" ALTER COLUMN "scope_id" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "realm_teams" ADD CONSTRAINT "realm_teams_scope_id_scopes_id_fk" FOREIGN KEY ("scope_id") REFERENCES "public"."scopes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "realm_teams" ADD CONSTRAINT "realm_teams_added_by_users_id_fk" FOREIGN KEY ("added_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "realm_teams_scope" ON "realm_teams" USING btree ("scope_id");
