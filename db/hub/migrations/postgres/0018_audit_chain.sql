CREATE TABLE "audit_chains" (
	"chain" text PRIMARY KEY NOT NULL,
	"org_id" bigint,
	"position" bigint NOT NULL,
	"seq" bigint NOT NULL,
	"hash" text NOT NULL,
	"anchor_seq" bigint NOT NULL,
	"anchor_hash" text NOT NULL,
	"anchor_at" bigint
);
--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "position" bigint;--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "seq" bigint;--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "hash" text;--> statement-breakpoint
CREATE INDEX "audit_position" ON "audit" USING btree ("position","id");--> statement-breakpoint
CREATE INDEX "audit_org_position" ON "audit" USING btree ("org_id","position");