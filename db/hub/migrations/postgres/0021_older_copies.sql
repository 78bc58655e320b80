CREATE TABLE "copies" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"realm_id" text,
	"found_at" bigint NOT NULL,
	"written_at" bigint NOT NULL,
	"count" bigint NOT NULL,
	"raised" bigint NOT NULL,
	"lost" boolean,
	"ended_at" bigint
);
--> statement-breakpoint
CREATE TABLE "hub_processes" (
	"id" text PRIMARY KEY NOT NULL,
	"started_at" bigint NOT NULL,
	"beat_at" bigint NOT NULL,
	"left_at" bigint
);
--> statement-breakpoint
CREATE TABLE "memory" (
	"id" bigint PRIMARY KEY NOT NULL,
	"lineage" text NOT NULL,
	"secret" text NOT NULL,
	"base" bigint NOT NULL,
	"place" text NOT NULL,
	"mark" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memory_counts" (
	"lane" text PRIMARY KEY NOT NULL,
	"count" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "witnesses" (
	"copy_id" text NOT NULL,
	"id" text NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"realm_id" text,
	"last_seen_at" bigint NOT NULL,
	"offer" text,
	"compared_at" bigint,
	"reported_at" bigint,
	"passed_at" bigint,
	CONSTRAINT "witnesses_copy_id_id_pk" PRIMARY KEY("copy_id","id")
);
--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "copy_id" text;--> statement-breakpoint
ALTER TABLE "witnesses" ADD CONSTRAINT "witnesses_copy_id_copies_id_fk" FOREIGN KEY ("copy_id") REFERENCES "public"."copies"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "witnesses_daemon" ON "witnesses" USING btree ("id");--> statement-breakpoint
CREATE INDEX "jobs_held" ON "jobs" USING btree ("realm_id","copy_id") WHERE "jobs"."state" = 'held';