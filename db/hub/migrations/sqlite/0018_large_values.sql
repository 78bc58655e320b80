CREATE TABLE `large_values` (
	`run_id` text NOT NULL,
	`owner` text NOT NULL,
	`name` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`run_id`, `owner`, `name`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`run_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `open_streams` (
	`id` text PRIMARY KEY NOT NULL,
	`realm_id` text NOT NULL,
	`until` integer NOT NULL,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `open_streams_realm` ON `open_streams` (`realm_id`,`until`);--> statement-breakpoint
CREATE TABLE `realm_use` (
	`realm_id` text PRIMARY KEY NOT NULL,
	`waiting` integer,
	`stored_bytes` integer,
	`log_bytes` integer,
	`minute_at` integer DEFAULT 0 NOT NULL,
	`dispatched` integer DEFAULT 0 NOT NULL,
	FOREIGN KEY (`realm_id`) REFERENCES `realms`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
ALTER TABLE `phases` ADD `beside` text;--> statement-breakpoint
ALTER TABLE `realms` ADD `quotas` text;--> statement-breakpoint
ALTER TABLE `reviews` ADD `beside` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `log_bytes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `log_cut` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `beside` text;--> statement-breakpoint
CREATE INDEX `artifacts_content` ON `artifacts` (`run_id`,`sha256`);--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'inputs', "inputs" FROM "runs" WHERE octet_length("inputs") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'outputs', "outputs" FROM "runs" WHERE octet_length("outputs") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'error', "error" FROM "runs" WHERE octet_length("error") > 1024;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'deliveries', "deliveries" FROM "runs" WHERE octet_length("deliveries") > 2048;--> statement-breakpoint
UPDATE "runs" SET "beside" = (SELECT json_group_object("name", octet_length("value")) FROM "large_values" WHERE "large_values"."run_id" = "runs"."run_id" AND "owner" = '') WHERE EXISTS (SELECT 1 FROM "large_values" WHERE "large_values"."run_id" = "runs"."run_id" AND "owner" = '');--> statement-breakpoint
UPDATE "runs" SET "inputs" = '{}' WHERE octet_length("inputs") > 2048;--> statement-breakpoint
UPDATE "runs" SET "outputs" = NULL WHERE octet_length("outputs") > 2048;--> statement-breakpoint
UPDATE "runs" SET "error" = json_object('code', substr(coalesce(json_extract("error", '$.code'), 'error'), 1, 100), 'message', substr(coalesce(json_extract("error", '$.message'), ''), 1, 200) || '…') WHERE octet_length("error") > 1024;--> statement-breakpoint
UPDATE "runs" SET "deliveries" = NULL WHERE octet_length("deliveries") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'text', json_quote("text") FROM "phases" WHERE octet_length("text") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'data', "data" FROM "phases" WHERE octet_length("data") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'error', "error" FROM "phases" WHERE octet_length("error") > 1024;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'depends_on', "depends_on" FROM "phases" WHERE octet_length("depends_on") > 1024;--> statement-breakpoint
UPDATE "phases" SET "beside" = (SELECT json_group_object("name", octet_length("value")) FROM "large_values" WHERE "large_values"."run_id" = "phases"."run_id" AND "owner" = 'phase ' || "phases"."index") WHERE EXISTS (SELECT 1 FROM "large_values" WHERE "large_values"."run_id" = "phases"."run_id" AND "owner" = 'phase ' || "phases"."index");--> statement-breakpoint
UPDATE "phases" SET "text" = '' WHERE octet_length("text") > 2048;--> statement-breakpoint
UPDATE "phases" SET "data" = NULL WHERE octet_length("data") > 2048;--> statement-breakpoint
UPDATE "phases" SET "error" = json_object('code', substr(coalesce(json_extract("error", '$.code'), 'error'), 1, 100), 'message', substr(coalesce(json_extract("error", '$.message'), ''), 1, 200) || '…') WHERE octet_length("error") > 1024;--> statement-breakpoint
UPDATE "phases" SET "depends_on" = '[]' WHERE octet_length("depends_on") > 1024;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'entries', "entries" FROM "reviews" WHERE octet_length("entries") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'prompt', json_quote("prompt") FROM "reviews" WHERE octet_length("prompt") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'inputs', "inputs" FROM "reviews" WHERE octet_length("inputs") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'reviewers', "reviewers" FROM "reviews" WHERE octet_length("reviewers") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'comment', json_quote("comment") FROM "reviews" WHERE octet_length("comment") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "beside" = (SELECT json_group_object("name", octet_length("value")) FROM "large_values" WHERE "large_values"."run_id" = "reviews"."run_id" AND "owner" = 'review ' || "reviews"."id") WHERE EXISTS (SELECT 1 FROM "large_values" WHERE "large_values"."run_id" = "reviews"."run_id" AND "owner" = 'review ' || "reviews"."id");--> statement-breakpoint
UPDATE "reviews" SET "entries" = '[]' WHERE octet_length("entries") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "prompt" = NULL WHERE octet_length("prompt") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "inputs" = '[]' WHERE octet_length("inputs") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "reviewers" = '[]' WHERE octet_length("reviewers") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "comment" = NULL WHERE octet_length("comment") > 8192;--> statement-breakpoint
INSERT OR IGNORE INTO "artifacts" ("run_id", "path", "phase", "name", "bytes", "sha256") SELECT p."run_id", json_extract(f."value", '$.path'), p."name", json_extract(f."value", '$.name'), json_extract(f."value", '$.bytes'), json_extract(f."value", '$.sha256') FROM "phases" p, json_each(p."files") f WHERE p."files" <> '[]' AND f."type" = 'object' AND json_type(f."value", '$.path') = 'text' AND json_type(f."value", '$.name') = 'text' AND json_type(f."value", '$.sha256') = 'text' AND json_type(f."value", '$.bytes') = 'integer';--> statement-breakpoint
UPDATE "phases" SET "files" = '[]' WHERE "files" <> '[]';--> statement-breakpoint
UPDATE "runs" SET "log_bytes" = (SELECT coalesce(sum(octet_length("text")), 0) FROM "logs" WHERE "logs"."run_id" = "runs"."run_id");
