ALTER TABLE `daemons` ADD `environments` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `environment` text;