ALTER TABLE `runs` ADD `rev` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `runs_rev` ON `runs` (`root_run_id`,`rev`);