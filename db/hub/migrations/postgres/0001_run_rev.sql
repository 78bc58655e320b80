ALTER TABLE "runs" ADD COLUMN "rev" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_rev" ON "runs" USING btree ("root_run_id","rev");