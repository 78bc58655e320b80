CREATE TABLE "large_values" (
	"run_id" text NOT NULL,
	"owner" text NOT NULL,
	"name" text NOT NULL,
	"value" text NOT NULL,
	CONSTRAINT "large_values_run_id_owner_name_pk" PRIMARY KEY("run_id","owner","name")
);
--> statement-breakpoint
CREATE TABLE "open_streams" (
	"id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"until" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "realm_use" (
	"realm_id" text PRIMARY KEY NOT NULL,
	"waiting" bigint,
	"stored_bytes" bigint,
	"log_bytes" bigint,
	"minute_at" bigint DEFAULT 0 NOT NULL,
	"dispatched" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
ALTER TABLE "phases" ADD COLUMN "beside" text;--> statement-breakpoint
ALTER TABLE "realms" ADD COLUMN "quotas" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "beside" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "log_bytes" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "log_cut" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "beside" text;--> statement-breakpoint
ALTER TABLE "large_values" ADD CONSTRAINT "large_values_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "open_streams" ADD CONSTRAINT "open_streams_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "realm_use" ADD CONSTRAINT "realm_use_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "open_streams_realm" ON "open_streams" USING btree ("realm_id","until");--> statement-breakpoint
CREATE INDEX "artifacts_content" ON "artifacts" USING btree ("run_id","sha256");--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'inputs', "inputs" FROM "runs" WHERE octet_length("inputs") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'outputs', "outputs" FROM "runs" WHERE octet_length("outputs") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'error', "error" FROM "runs" WHERE octet_length("error") > 1024;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", '', 'deliveries', "deliveries" FROM "runs" WHERE octet_length("deliveries") > 2048;--> statement-breakpoint
UPDATE "runs" SET "beside" = (SELECT json_object_agg("name", octet_length("value"))::text FROM "large_values" WHERE "large_values"."run_id" = "runs"."run_id" AND "owner" = '') WHERE EXISTS (SELECT 1 FROM "large_values" WHERE "large_values"."run_id" = "runs"."run_id" AND "owner" = '');--> statement-breakpoint
UPDATE "runs" SET "inputs" = '{}' WHERE octet_length("inputs") > 2048;--> statement-breakpoint
UPDATE "runs" SET "outputs" = NULL WHERE octet_length("outputs") > 2048;--> statement-breakpoint
UPDATE "runs" SET "error" = json_build_object('code', left(coalesce("error"::json->>'code', 'error'), 100), 'message', left(coalesce("error"::json->>'message', ''), 200) || '…')::text WHERE octet_length("error") > 1024;--> statement-breakpoint
UPDATE "runs" SET "deliveries" = NULL WHERE octet_length("deliveries") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'text', to_json("text")::text FROM "phases" WHERE octet_length("text") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'data', "data" FROM "phases" WHERE octet_length("data") > 2048;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'error', "error" FROM "phases" WHERE octet_length("error") > 1024;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'phase ' || "index", 'depends_on', "depends_on" FROM "phases" WHERE octet_length("depends_on") > 1024;--> statement-breakpoint
UPDATE "phases" SET "beside" = (SELECT json_object_agg("name", octet_length("value"))::text FROM "large_values" WHERE "large_values"."run_id" = "phases"."run_id" AND "owner" = 'phase ' || "phases"."index") WHERE EXISTS (SELECT 1 FROM "large_values" WHERE "large_values"."run_id" = "phases"."run_id" AND "owner" = 'phase ' || "phases"."index");--> statement-breakpoint
UPDATE "phases" SET "text" = '' WHERE octet_length("text") > 2048;--> statement-breakpoint
UPDATE "phases" SET "data" = NULL WHERE octet_length("data") > 2048;--> statement-breakpoint
UPDATE "phases" SET "error" = json_build_object('code', left(coalesce("error"::json->>'code', 'error'), 100), 'message', left(coalesce("error"::json->>'message', ''), 200) || '…')::text WHERE octet_length("error") > 1024;--> statement-breakpoint
UPDATE "phases" SET "depends_on" = '[]' WHERE octet_length("depends_on") > 1024;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'entries', "entries" FROM "reviews" WHERE octet_length("entries") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'prompt', to_json("prompt")::text FROM "reviews" WHERE octet_length("prompt") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'inputs', "inputs" FROM "reviews" WHERE octet_length("inputs") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'reviewers', "reviewers" FROM "reviews" WHERE octet_length("reviewers") > 8192;--> statement-breakpoint
INSERT INTO "large_values" ("run_id", "owner", "name", "value") SELECT "run_id", 'review ' || "id", 'comment', to_json("comment")::text FROM "reviews" WHERE octet_length("comment") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "beside" = (SELECT json_object_agg("name", octet_length("value"))::text FROM "large_values" WHERE "large_values"."run_id" = "reviews"."run_id" AND "owner" = 'review ' || "reviews"."id") WHERE EXISTS (SELECT 1 FROM "large_values" WHERE "large_values"."run_id" = "reviews"."run_id" AND "owner" = 'review ' || "reviews"."id");--> statement-breakpoint
UPDATE "reviews" SET "entries" = '[]' WHERE octet_length("entries") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "prompt" = NULL WHERE octet_length("prompt") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "inputs" = '[]' WHERE octet_length("inputs") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "reviewers" = '[]' WHERE octet_length("reviewers") > 8192;--> statement-breakpoint
UPDATE "reviews" SET "comment" = NULL WHERE octet_length("comment") > 8192;--> statement-breakpoint
INSERT INTO "artifacts" ("run_id", "path", "phase", "name", "bytes", "sha256") SELECT p."run_id", f->>'path', p."name", f->>'name', (f->>'bytes')::bigint, f->>'sha256' FROM "phases" p, json_array_elements(p."files"::json) f WHERE p."files" <> '[]' AND json_typeof(f) = 'object' AND json_typeof(f->'path') = 'string' AND json_typeof(f->'name') = 'string' AND json_typeof(f->'sha256') = 'string' AND json_typeof(f->'bytes') = 'number' AND f->>'bytes' ~ '^[0-9]{1,16}$' AND octet_length(f->>'path') <= 2400 ON CONFLICT DO NOTHING;--> statement-breakpoint
UPDATE "phases" SET "files" = '[]' WHERE "files" <> '[]';--> statement-breakpoint
UPDATE "runs" SET "log_bytes" = (SELECT coalesce(sum(octet_length("text")), 0) FROM "logs" WHERE "logs"."run_id" = "runs"."run_id");
