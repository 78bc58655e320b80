CREATE TABLE `news` (
	`id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`topics` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `news_at` ON `news` (`at`);