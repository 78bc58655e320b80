ALTER TABLE "daemons" ADD COLUMN "environments" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "environment" text;