ALTER TABLE "daemons" ADD COLUMN "approved_at" bigint;--> statement-breakpoint
UPDATE daemons SET approved_at = registered_at;
