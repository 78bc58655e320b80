CREATE TABLE `lived_time` (
	`id` integer PRIMARY KEY NOT NULL,
	`lived` integer NOT NULL,
	`at` integer NOT NULL,
	`believed` integer NOT NULL,
	`latest` integer NOT NULL,
	`claimed` integer NOT NULL,
	`claimed_for` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `copies` ADD `found_lived` integer;--> statement-breakpoint
ALTER TABLE `daemons` ADD `called_at` integer;--> statement-breakpoint
ALTER TABLE `hub_processes` ADD `beat_time` integer;--> statement-breakpoint
ALTER TABLE `jobs` ADD `asked_at` integer;--> statement-breakpoint
ALTER TABLE `runs` ADD `kept_since` integer;--> statement-breakpoint
CREATE INDEX `runs_kept` ON `runs` ((CASE WHEN "kept_since" IS NULL THEN "completed_at" ELSE "kept_since" END)) WHERE "runs"."run_id" = "runs"."root_run_id";