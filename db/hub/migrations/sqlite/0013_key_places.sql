CREATE TABLE `key_places` (
	`run_id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`key` text NOT NULL,
	`most` integer NOT NULL,
	`when_full` text NOT NULL,
	`state` text NOT NULL,
	`since` integer NOT NULL,
	`ending` integer NOT NULL,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `key_places_turns` ON `key_places` (`state`,`realm_id`,`key`,`since`,`run_id`);--> statement-breakpoint
ALTER TABLE `packages` ADD `concurrency` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `concurrency_key` text;