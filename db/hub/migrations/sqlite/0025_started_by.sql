ALTER TABLE `runs` ADD `started_by` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `starter_kind` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `starter_name` text;--> statement-breakpoint
CREATE INDEX `runs_starter_kind` ON `runs` (`realm_id`,`starter_kind`,`run_id`) WHERE "runs"."run_id" = "runs"."root_run_id";--> statement-breakpoint
CREATE INDEX `runs_starter` ON `runs` (`realm_id`,`starter_kind`,`starter_name`,`run_id`) WHERE "runs"."run_id" = "runs"."root_run_id";