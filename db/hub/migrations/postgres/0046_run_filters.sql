-- Reads of runs go on while the indexes are made, and wait from the first one that is dropped.
CREATE INDEX "runs_team" ON "runs" USING btree ("realm_id",left(substr("team", strpos("team", '/') + 1), 300),"run_id");--> statement-breakpoint
CREATE INDEX "runs_live" ON "runs" USING btree ("realm_id","run_id") WHERE "runs"."state" IN ('queued', 'running', 'awaiting_input');--> statement-breakpoint
CREATE INDEX "runs_started_by" ON "runs" USING btree ("realm_id",(CASE WHEN "run_id" <> "root_run_id" THEN NULL WHEN "starter_kind" IS NULL THEN 'unknown' ELSE "starter_kind" END),"run_id") WHERE (CASE WHEN "runs"."run_id" <> "runs"."root_run_id" THEN NULL WHEN "runs"."starter_kind" IS NULL THEN 'unknown' ELSE "runs"."starter_kind" END) IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_started_by_name" ON "runs" USING btree ("realm_id",(CASE WHEN "run_id" <> "root_run_id" THEN NULL WHEN "starter_kind" IS NULL THEN 'unknown' ELSE "starter_kind" END),"starter_name","run_id") WHERE (CASE WHEN "runs"."run_id" <> "runs"."root_run_id" THEN NULL WHEN "runs"."starter_kind" IS NULL THEN 'unknown' ELSE "runs"."starter_kind" END) IS NOT NULL;--> statement-breakpoint
DROP INDEX "runs_starter_kind";--> statement-breakpoint
DROP INDEX "runs_starter";
