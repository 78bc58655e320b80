ALTER TABLE "invitations" ADD COLUMN "revoked_at" bigint;--> statement-breakpoint
ALTER TABLE "sign_in_failures" ADD COLUMN "attempt" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "deleted_at" bigint;--> statement-breakpoint
CREATE INDEX "sign_in_failures_attempt" ON "sign_in_failures" USING btree ("attempt");