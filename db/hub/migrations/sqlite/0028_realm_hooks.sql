CREATE TABLE `hook_bodies` (
	`firing_id` text PRIMARY KEY NOT NULL,
	`sealed` text NOT NULL,
	`delete_at` integer,
	FOREIGN KEY (`firing_id`) REFERENCES `firings`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `hook_bodies_delete_at` ON `hook_bodies` (`delete_at`);--> statement-breakpoint
CREATE TABLE `hook_secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`trigger_id` text NOT NULL,
	`sealed` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	FOREIGN KEY (`trigger_id`) REFERENCES `triggers`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `hook_secrets_trigger` ON `hook_secrets` (`trigger_id`);--> statement-breakpoint
CREATE TABLE `hooks` (
	`trigger_id` text PRIMARY KEY NOT NULL,
	`token` text NOT NULL,
	FOREIGN KEY (`trigger_id`) REFERENCES `triggers`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hooks_token` ON `hooks` (`token`);--> statement-breakpoint
ALTER TABLE `firings` ADD `deliveries` integer;