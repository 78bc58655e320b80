CREATE TABLE "sealing_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "hub_processes" ADD COLUMN "keys" text;