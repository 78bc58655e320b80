CREATE TABLE `kept_files` (
	`realm_id` text NOT NULL,
	`root_run_id` text NOT NULL,
	`sha256` text NOT NULL,
	`bytes` integer NOT NULL,
	`kept_for` text,
	`asked_at` integer NOT NULL,
	`stored_at` integer,
	PRIMARY KEY(`root_run_id`, `sha256`),
	FOREIGN KEY (`kept_for`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE set null
);
--> statement-breakpoint
CREATE INDEX `kept_files_for` ON `kept_files` (`kept_for`,`asked_at`);