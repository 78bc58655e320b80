ALTER TABLE "runs" ADD COLUMN "started_by" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "starter_kind" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "starter_name" text;--> statement-breakpoint
CREATE INDEX "runs_starter_kind" ON "runs" USING btree ("realm_id","starter_kind","run_id") WHERE "runs"."run_id" = "runs"."root_run_id";--> statement-breakpoint
CREATE INDEX "runs_starter" ON "runs" USING btree ("realm_id","starter_kind","starter_name","run_id") WHERE "runs"."run_id" = "runs"."root_run_id";