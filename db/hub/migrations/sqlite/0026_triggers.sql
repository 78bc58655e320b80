CREATE TABLE `firings` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`trigger_id` text NOT NULL,
	`revision` integer NOT NULL,
	`occasion` text NOT NULL,
	`at` integer NOT NULL,
	`until` integer,
	`seen_at` integer NOT NULL,
	`started_at` integer,
	`state` text NOT NULL,
	`reason` text,
	`detail` text,
	`run_id` text,
	`count` integer NOT NULL,
	`late_ms` integer,
	`manual` text,
	`variables` text NOT NULL,
	FOREIGN KEY (`trigger_id`) REFERENCES `triggers`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `firings_occasion` ON `firings` (`trigger_id`,`occasion`);--> statement-breakpoint
CREATE UNIQUE INDEX `firings_id` ON `firings` (`id`);--> statement-breakpoint
CREATE INDEX `firings_trigger` ON `firings` (`trigger_id`,`seq`);--> statement-breakpoint
CREATE INDEX `firings_waiting` ON `firings` (`trigger_id`,`seq`) WHERE "firings"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX `firings_started` ON `firings` (`trigger_id`,`started_at`) WHERE "firings"."started_at" is not null;--> statement-breakpoint
CREATE INDEX `firings_run` ON `firings` (`run_id`) WHERE "firings"."run_id" is not null;--> statement-breakpoint
CREATE TABLE `triggers` (
	`id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`spec` text NOT NULL,
	`revision` integer NOT NULL,
	`source` text NOT NULL,
	`enabled` integer NOT NULL,
	`paused` text,
	`problem` text,
	`cursor` integer NOT NULL,
	`next_at` integer,
	`owner_id` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`removed_at` integer,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `triggers_name` ON `triggers` (`realm_id`,`name`) WHERE "triggers"."removed_at" is null;--> statement-breakpoint
CREATE INDEX `triggers_due` ON `triggers` (`next_at`) WHERE "triggers"."next_at" is not null;--> statement-breakpoint
CREATE INDEX `triggers_ahead` ON `triggers` (`cursor`) WHERE "triggers"."next_at" is not null;--> statement-breakpoint
CREATE INDEX `triggers_owner` ON `triggers` (`owner_id`);--> statement-breakpoint
CREATE INDEX `triggers_removed` ON `triggers` (`removed_at`) WHERE "triggers"."removed_at" is not null;