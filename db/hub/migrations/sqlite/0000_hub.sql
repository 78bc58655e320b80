CREATE TABLE `artifacts` (
	`run_id` text NOT NULL,
	`path` text NOT NULL,
	`phase` text NOT NULL,
	`name` text NOT NULL,
	`bytes` integer NOT NULL,
	`sha256` text NOT NULL,
	PRIMARY KEY(`run_id`, `path`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `audit` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`user_id` integer,
	`username` text,
	`token_id` integer,
	`org_id` integer,
	`realm_id` text,
	`action` text NOT NULL,
	`target` text
);
--> statement-breakpoint
CREATE INDEX `audit_org` ON `audit` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `daemons` (
	`id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`token_id` integer NOT NULL,
	`name` text NOT NULL,
	`hostname` text,
	`version` text,
	`capacity` integer,
	`agents` text NOT NULL,
	`workspaces` text NOT NULL,
	`registered_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`stuck` integer NOT NULL,
	`removed_at` integer,
	`epoch` text,
	`acked_seq` integer NOT NULL,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`token_id`) REFERENCES `tokens`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `daemons_realm` ON `daemons` (`realm_id`);--> statement-breakpoint
CREATE INDEX `daemons_token` ON `daemons` (`token_id`);--> statement-breakpoint
CREATE TABLE `dispatch_keys` (
	`kid` text PRIMARY KEY NOT NULL,
	`org_id` integer NOT NULL,
	`public_pem` text NOT NULL,
	`private_key` text NOT NULL,
	`created_at` integer NOT NULL,
	`not_after` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `dispatch_keys_org` ON `dispatch_keys` (`org_id`);--> statement-breakpoint
CREATE TABLE `events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`run_id` text NOT NULL,
	`name` text NOT NULL,
	`phase` text,
	`at` integer NOT NULL,
	`data` text,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `events_run` ON `events` (`run_id`,`id`);--> statement-breakpoint
CREATE TABLE `invitations` (
	`id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`role` text NOT NULL,
	`username` text,
	`hash` text NOT NULL,
	`created_by` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`accepted_at` integer,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invitations_hash_unique` ON `invitations` (`hash`);--> statement-breakpoint
CREATE INDEX `invitations_realm` ON `invitations` (`realm_id`);--> statement-breakpoint
CREATE TABLE `jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`run_id` text NOT NULL,
	`kind` text NOT NULL,
	`payload` text NOT NULL,
	`priority` integer NOT NULL,
	`state` text NOT NULL,
	`daemon_id` text,
	`workspace` text,
	`leased_to` text,
	`lease_id` text,
	`lease_until` integer,
	`deliveries` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`finished_at` integer,
	`error` text,
	`idempotency_key` text,
	`created_by` integer NOT NULL,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `jobs_queue` ON `jobs` (`realm_id`,`state`,`priority`,`created_at`);--> statement-breakpoint
CREATE INDEX `jobs_run` ON `jobs` (`run_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_idempotency` ON `jobs` (`realm_id`,`idempotency_key`);--> statement-breakpoint
CREATE TABLE `logs` (
	`run_id` text NOT NULL,
	`seq` integer NOT NULL,
	`phase` text,
	`at` integer NOT NULL,
	`stream` text NOT NULL,
	`text` text NOT NULL,
	PRIMARY KEY(`run_id`, `seq`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `org_members` (
	`org_id` integer NOT NULL,
	`user_id` integer NOT NULL,
	`role` text NOT NULL,
	PRIMARY KEY(`org_id`, `user_id`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `org_members_user` ON `org_members` (`user_id`);--> statement-breakpoint
CREATE TABLE `orgs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`slug` text NOT NULL,
	`display_name` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `orgs_slug_unique` ON `orgs` (`slug`);--> statement-breakpoint
CREATE TABLE `package_files` (
	`package_id` integer PRIMARY KEY NOT NULL,
	`files` text NOT NULL,
	FOREIGN KEY (`package_id`) REFERENCES `packages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `packages` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`scope_id` integer NOT NULL,
	`name` text NOT NULL,
	`version` text NOT NULL,
	`description` text NOT NULL,
	`sha256` text NOT NULL,
	`bytes` integer NOT NULL,
	`inputs` text NOT NULL,
	`dependencies` text NOT NULL,
	`published_at` integer NOT NULL,
	`published_by` integer NOT NULL,
	`yanked_at` integer,
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `packages_version` ON `packages` (`name`,`version`);--> statement-breakpoint
CREATE INDEX `packages_scope` ON `packages` (`scope_id`);--> statement-breakpoint
CREATE TABLE `phases` (
	`run_id` text NOT NULL,
	`index` integer NOT NULL,
	`name` text NOT NULL,
	`type` text NOT NULL,
	`agent` text,
	`action` text,
	`state` text NOT NULL,
	`reason` text,
	`attempt` integer NOT NULL,
	`depends_on` text NOT NULL,
	`started_at` integer,
	`completed_at` integer,
	`error` text,
	`ok` integer,
	`text` text NOT NULL,
	`data` text,
	`files` text NOT NULL,
	PRIMARY KEY(`run_id`, `index`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `realm_members` (
	`realm_id` text NOT NULL,
	`user_id` integer NOT NULL,
	`role` text NOT NULL,
	PRIMARY KEY(`realm_id`, `user_id`),
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `realm_members_user` ON `realm_members` (`user_id`);--> statement-breakpoint
CREATE TABLE `realm_teams` (
	`realm_id` text NOT NULL,
	`team` text NOT NULL,
	`added_at` integer NOT NULL,
	PRIMARY KEY(`realm_id`, `team`),
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `realms` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` integer NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `realms_slug` ON `realms` (`org_id`,`slug`);--> statement-breakpoint
CREATE TABLE `receipts` (
	`run_id` text NOT NULL,
	`phase` text NOT NULL,
	`entry` text NOT NULL,
	`state` text NOT NULL,
	`receipt` text NOT NULL,
	PRIMARY KEY(`run_id`, `phase`, `entry`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `reviews` (
	`id` text PRIMARY KEY NOT NULL,
	`run_id` text NOT NULL,
	`realm_id` text NOT NULL,
	`run_name` text,
	`phase` text NOT NULL,
	`entries` text NOT NULL,
	`kind` text NOT NULL,
	`reason` text,
	`prompt` text,
	`inputs` text NOT NULL,
	`reviewers` text NOT NULL,
	`state` text NOT NULL,
	`decision` text,
	`decided_by` text,
	`comment` text,
	`created_at` integer NOT NULL,
	`decided_at` integer,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `reviews_realm` ON `reviews` (`realm_id`,`state`);--> statement-breakpoint
CREATE INDEX `reviews_run` ON `reviews` (`run_id`);--> statement-breakpoint
CREATE TABLE `runs` (
	`run_id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`daemon_id` text,
	`job_id` text,
	`run_name` text,
	`root_run_id` text NOT NULL,
	`parent_run_id` text,
	`parent_phase` text,
	`call_path` text NOT NULL,
	`call_depth` integer NOT NULL,
	`tree_key` text NOT NULL,
	`team` text NOT NULL,
	`version` text,
	`state` text NOT NULL,
	`reason` text,
	`error` text,
	`inputs` text NOT NULL,
	`outputs` text,
	`deliveries` text,
	`workspace` text,
	`attempt` integer NOT NULL,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`completed_at` integer,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `runs_tree` ON `runs` (`root_run_id`,`tree_key`);--> statement-breakpoint
CREATE INDEX `runs_realm` ON `runs` (`realm_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `runs_completed` ON `runs` (`completed_at`);--> statement-breakpoint
CREATE TABLE `scope_members` (
	`scope_id` integer NOT NULL,
	`user_id` integer NOT NULL,
	`role` text NOT NULL,
	PRIMARY KEY(`scope_id`, `user_id`),
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `scope_members_user` ON `scope_members` (`user_id`);--> statement-breakpoint
CREATE TABLE `scopes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`org_id` integer NOT NULL,
	`slug` text NOT NULL,
	`display_name` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scopes_slug_unique` ON `scopes` (`slug`);--> statement-breakpoint
CREATE INDEX `scopes_org` ON `scopes` (`org_id`);--> statement-breakpoint
CREATE TABLE `token_realms` (
	`token_id` integer NOT NULL,
	`realm_id` text NOT NULL,
	PRIMARY KEY(`token_id`, `realm_id`),
	FOREIGN KEY (`token_id`) REFERENCES `tokens`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `token_realms_realm` ON `token_realms` (`realm_id`);--> statement-breakpoint
CREATE TABLE `tokens` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`type` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`grant` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`expires_at` integer,
	`revoked_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tokens_hash_unique` ON `tokens` (`hash`);--> statement-breakpoint
CREATE INDEX `tokens_user` ON `tokens` (`user_id`,`id`);--> statement-breakpoint
CREATE TABLE `users` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`username` text NOT NULL,
	`password_hash` text NOT NULL,
	`site_admin` integer NOT NULL,
	`created_at` integer NOT NULL,
	`suspended_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_username_unique` ON `users` (`username`);