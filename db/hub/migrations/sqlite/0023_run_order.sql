DROP INDEX `runs_realm`;--> statement-breakpoint
DROP INDEX `runs_state`;--> statement-breakpoint
CREATE INDEX `runs_realm` ON `runs` (`realm_id`,`run_id`);--> statement-breakpoint
CREATE INDEX `runs_state` ON `runs` (`realm_id`,`state`,`run_id`);