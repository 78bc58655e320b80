CREATE TABLE `audit_chains` (
	`chain` text PRIMARY KEY NOT NULL,
	`org_id` integer,
	`position` integer NOT NULL,
	`seq` integer NOT NULL,
	`hash` text NOT NULL,
	`anchor_seq` integer NOT NULL,
	`anchor_hash` text NOT NULL,
	`anchor_at` integer
);
--> statement-breakpoint
ALTER TABLE `audit` ADD `position` integer;--> statement-breakpoint
ALTER TABLE `audit` ADD `seq` integer;--> statement-breakpoint
ALTER TABLE `audit` ADD `hash` text;--> statement-breakpoint
CREATE INDEX `audit_position` ON `audit` (`position`,`id`);--> statement-breakpoint
CREATE INDEX `audit_org_position` ON `audit` (`org_id`,`position`);