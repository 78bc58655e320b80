CREATE TABLE `refused_starts` (
	`hub` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`refused_at` integer NOT NULL
);
