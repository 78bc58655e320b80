CREATE TABLE `copies` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`realm_id` text,
	`found_at` integer NOT NULL,
	`written_at` integer NOT NULL,
	`count` integer NOT NULL,
	`raised` integer NOT NULL,
	`lost` integer,
	`ended_at` integer
);
--> statement-breakpoint
CREATE TABLE `hub_processes` (
	`id` text PRIMARY KEY NOT NULL,
	`started_at` integer NOT NULL,
	`beat_at` integer NOT NULL,
	`left_at` integer
);
--> statement-breakpoint
CREATE TABLE `memory` (
	`id` integer PRIMARY KEY NOT NULL,
	`lineage` text NOT NULL,
	`secret` text NOT NULL,
	`base` integer NOT NULL,
	`place` text NOT NULL,
	`mark` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `memory_counts` (
	`lane` text PRIMARY KEY NOT NULL,
	`count` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `witnesses` (
	`copy_id` text NOT NULL,
	`id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`realm_id` text,
	`last_seen_at` integer NOT NULL,
	`offer` text,
	`compared_at` integer,
	`reported_at` integer,
	`passed_at` integer,
	PRIMARY KEY(`copy_id`, `id`),
	FOREIGN KEY (`copy_id`) REFERENCES `copies`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `witnesses_daemon` ON `witnesses` (`id`);--> statement-breakpoint
ALTER TABLE `jobs` ADD `copy_id` text;--> statement-breakpoint
CREATE INDEX `jobs_held` ON `jobs` (`realm_id`,`copy_id`) WHERE "jobs"."state" = 'held';