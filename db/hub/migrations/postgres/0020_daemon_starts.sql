ALTER TABLE "daemons" ADD COLUMN "starts" bigint;--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "start" text;