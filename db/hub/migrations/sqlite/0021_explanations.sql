CREATE TABLE `explanations` (
	`run_id` text PRIMARY KEY NOT NULL,
	`attempt` integer NOT NULL,
	`state` text NOT NULL,
	`why` text NOT NULL,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
