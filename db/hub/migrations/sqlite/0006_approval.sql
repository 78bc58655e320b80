ALTER TABLE `daemons` ADD `approved_at` integer;--> statement-breakpoint
UPDATE daemons SET approved_at = registered_at;
