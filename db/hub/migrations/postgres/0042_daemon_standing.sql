ALTER TABLE "daemons" ADD COLUMN "standing" text;--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "examine" bigint;--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "examined" bigint;