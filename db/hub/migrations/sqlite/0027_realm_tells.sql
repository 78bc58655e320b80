CREATE TABLE `tells` (
	`id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`account` text NOT NULL,
	`text` text NOT NULL,
	`subject` text NOT NULL,
	`once` text NOT NULL,
	`state` text NOT NULL,
	`leased_to` text,
	`lease_id` text,
	`lease_until` integer,
	`deliveries` integer NOT NULL,
	`created_at` integer NOT NULL,
	`finished_at` integer,
	`error` text,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `tells_open` ON `tells` (`realm_id`,`created_at`) WHERE "tells"."finished_at" is null;--> statement-breakpoint
CREATE INDEX `tells_subject` ON `tells` (`realm_id`,`subject`,`account`,`created_at`);--> statement-breakpoint
CREATE UNIQUE INDEX `tells_once` ON `tells` (`realm_id`,`account`,`once`);--> statement-breakpoint
CREATE INDEX `tells_finished` ON `tells` (`finished_at`);--> statement-breakpoint
ALTER TABLE `daemons` ADD `kinds` text;--> statement-breakpoint
ALTER TABLE `daemons` ADD `accounts` text;--> statement-breakpoint
ALTER TABLE `realms` ADD `notify` text;