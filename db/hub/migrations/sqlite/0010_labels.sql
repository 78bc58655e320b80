DROP INDEX `jobs_queue`;--> statement-breakpoint
ALTER TABLE `jobs` ADD `needs` text;--> statement-breakpoint
ALTER TABLE `jobs` ADD `needs_key` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `jobs_queue` ON `jobs` (`realm_id`,`state`,`kind`,`daemon_id`,`needs_key`,"priority" desc,`created_at`,`id`);--> statement-breakpoint
ALTER TABLE `daemons` ADD `labels` text;--> statement-breakpoint
ALTER TABLE `daemons` ADD `paused` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `packages` ADD `needs` text;--> statement-breakpoint
UPDATE `jobs` SET `needs_key` = 'workspace ' || `workspace`, `needs` = json_object('labels', json('{}'), 'agents', json('{}'), 'named', json('[]'), 'workspace', `workspace`) WHERE `workspace` IS NOT NULL AND `kind` = 'run';
