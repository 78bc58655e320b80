CREATE TABLE `run_ends` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`realm_id` text NOT NULL,
	`run` text NOT NULL,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `run_ends_realm` ON `run_ends` (`realm_id`);--> statement-breakpoint
ALTER TABLE `firings` ADD `end_id` integer;--> statement-breakpoint
CREATE INDEX `firings_end` ON `firings` (`end_id`) WHERE "firings"."end_id" is not null;