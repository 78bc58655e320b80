ALTER TABLE "runs" ADD COLUMN "log_lines" bigint;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "log_last" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "log_missing" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "log_ended" boolean;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "log_kept" boolean DEFAULT false NOT NULL;