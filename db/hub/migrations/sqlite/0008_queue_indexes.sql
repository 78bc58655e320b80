DROP INDEX `jobs_queue`;--> statement-breakpoint
CREATE INDEX `jobs_lease` ON `jobs` (`realm_id`,`state`,`lease_until`);--> statement-breakpoint
CREATE INDEX `jobs_expiry` ON `jobs` (`realm_id`,`state`,`expires_at`);--> statement-breakpoint
CREATE INDEX `jobs_queue` ON `jobs` (`realm_id`,`state`,`kind`,`daemon_id`,"priority" desc,`created_at`,`id`);