DROP INDEX "runs_tree";--> statement-breakpoint
ALTER TABLE "runs" ALTER COLUMN "tree_key" SET DATA TYPE text COLLATE "C";--> statement-breakpoint
CREATE INDEX "runs_tree" ON "runs" USING btree ("root_run_id",left("tree_key", 2250));