CREATE TABLE `chores` (
	`name` text PRIMARY KEY NOT NULL,
	`holder` text,
	`lease_until` integer DEFAULT 0 NOT NULL,
	`last_run_at` integer,
	`last_run_ms` integer,
	`last_error` text,
	`last_error_at` integer
);
