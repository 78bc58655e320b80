ALTER TABLE `reviews` ADD `next` text;--> statement-breakpoint
ALTER TABLE `reviews` ADD `keeps_next` integer;--> statement-breakpoint
ALTER TABLE `reviews` ADD `expires_at` integer;