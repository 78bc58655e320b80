ALTER TABLE `invitations` ADD `revoked_at` integer;--> statement-breakpoint
ALTER TABLE `sign_in_failures` ADD `attempt` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `sign_in_failures_attempt` ON `sign_in_failures` (`attempt`);--> statement-breakpoint
ALTER TABLE `users` ADD `deleted_at` integer;