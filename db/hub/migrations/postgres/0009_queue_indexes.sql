DROP INDEX "jobs_queue";--> statement-breakpoint
CREATE INDEX "jobs_lease" ON "jobs" USING btree ("realm_id","state","lease_until");--> statement-breakpoint
CREATE INDEX "jobs_expiry" ON "jobs" USING btree ("realm_id","state","expires_at");--> statement-breakpoint
CREATE INDEX "jobs_queue" ON "jobs" USING btree ("realm_id","state","kind","daemon_id","priority" DESC NULLS FIRST,"created_at","id");