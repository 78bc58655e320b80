DROP INDEX "jobs_idempotency";--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "request_mark" text;--> statement-breakpoint
CREATE UNIQUE INDEX "jobs_idempotency" ON "jobs" USING btree ("realm_id","created_by","idempotency_key") WHERE "jobs"."idempotency_key" is not null;