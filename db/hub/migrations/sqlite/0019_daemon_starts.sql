ALTER TABLE `daemons` ADD `starts` integer;--> statement-breakpoint
ALTER TABLE `daemons` ADD `start` text;