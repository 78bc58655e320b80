CREATE TABLE "lived_time" (
	"id" bigint PRIMARY KEY NOT NULL,
	"lived" bigint NOT NULL,
	"at" bigint NOT NULL,
	"believed" bigint NOT NULL,
	"latest" bigint NOT NULL,
	"claimed" bigint NOT NULL,
	"claimed_for" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "copies" ADD COLUMN "found_lived" bigint;--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "called_at" bigint;--> statement-breakpoint
ALTER TABLE "hub_processes" ADD COLUMN "beat_time" bigint;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "asked_at" bigint;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "kept_since" bigint;--> statement-breakpoint
CREATE INDEX "runs_kept" ON "runs" USING btree ((CASE WHEN "kept_since" IS NULL THEN "completed_at" ELSE "kept_since" END)) WHERE "runs"."run_id" = "runs"."root_run_id";