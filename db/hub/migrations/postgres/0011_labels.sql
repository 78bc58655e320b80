DROP INDEX "jobs_queue";--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "labels" text;--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "paused" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "needs" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "needs_key" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "packages" ADD COLUMN "needs" text;--> statement-breakpoint
CREATE INDEX "jobs_queue" ON "jobs" USING btree ("realm_id","state","kind","daemon_id","needs_key","priority" DESC NULLS FIRST,"created_at","id");--> statement-breakpoint
UPDATE "jobs" SET "needs_key" = 'workspace ' || "workspace", "needs" = json_build_object('labels', json '{}', 'agents', json '{}', 'named', json '[]', 'workspace', "workspace")::text WHERE "workspace" IS NOT NULL AND "kind" = 'run';
