CREATE TABLE `scope_slugs` (
	`slug` text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
INSERT INTO scope_slugs (slug) SELECT slug FROM scopes
  UNION SELECT target FROM audit WHERE action = 'scopes/create' AND target IS NOT NULL
  UNION SELECT substr(team, 2, instr(team, '/') - 2) FROM realm_teams;--> statement-breakpoint
CREATE TABLE `new_realm_teams` (
	`realm_id` text NOT NULL,
	`team` text NOT NULL,
	`scope_id` integer NOT NULL,
	`added_at` integer NOT NULL,
	`added_by` integer,
	PRIMARY KEY(`realm_id`, `team`),
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`added_by`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
INSERT INTO new_realm_teams (realm_id, team, scope_id, added_at, added_by)
  SELECT listed.realm_id, listed.team, scopes.id, listed.added_at,
    (SELECT user_id FROM audit WHERE action = 'realms/add_team' AND audit.realm_id = listed.realm_id AND target = listed.team
    ORDER BY id DESC LIMIT 1)
  FROM realm_teams AS listed JOIN scopes ON scopes.slug = substr(listed.team, 2, instr(listed.team, '/') - 2);--> statement-breakpoint
DROP TABLE `realm_teams`;--> statement-breakpoint
ALTER TABLE `new_realm_teams` RENAME TO `realm_teams`;--> statement-breakpoint
CREATE INDEX `realm_teams_scope` ON `realm_teams` (`scope_id`);
