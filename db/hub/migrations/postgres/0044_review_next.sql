ALTER TABLE "reviews" ADD COLUMN "next" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "keeps_next" boolean;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "expires_at" bigint;