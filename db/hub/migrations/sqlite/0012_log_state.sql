ALTER TABLE `runs` ADD `log_lines` integer;--> statement-breakpoint
ALTER TABLE `runs` ADD `log_last` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `log_missing` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `log_ended` integer;--> statement-breakpoint
ALTER TABLE `runs` ADD `log_kept` integer DEFAULT false NOT NULL;