DROP INDEX `jobs_queue`;--> statement-breakpoint
DROP INDEX `jobs_lease`;--> statement-breakpoint
DROP INDEX `jobs_expiry`;--> statement-breakpoint
DROP INDEX `jobs_idempotency`;--> statement-breakpoint
CREATE INDEX `jobs_open` ON `jobs` (`realm_id`,`created_at`,`id`) WHERE "jobs"."finished_at" is null;--> statement-breakpoint
CREATE INDEX `jobs_queue` ON `jobs` (`realm_id`,`kind`,`daemon_id`,`needs_key`,"priority" desc,`created_at`,`id`) WHERE "jobs"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX `jobs_lease` ON `jobs` (`realm_id`,`lease_until`) WHERE "jobs"."state" = 'leased';--> statement-breakpoint
CREATE INDEX `jobs_expiry` ON `jobs` (`realm_id`,`expires_at`) WHERE "jobs"."state" in ('waiting', 'blocked') and "jobs"."expires_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_idempotency` ON `jobs` (`realm_id`,`idempotency_key`) WHERE "jobs"."idempotency_key" is not null;