ALTER TABLE `daemons` ADD `standing` text;--> statement-breakpoint
ALTER TABLE `daemons` ADD `examine` integer;--> statement-breakpoint
ALTER TABLE `daemons` ADD `examined` integer;