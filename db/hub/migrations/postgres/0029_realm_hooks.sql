CREATE TABLE "hook_bodies" (
	"firing_id" text PRIMARY KEY NOT NULL,
	"sealed" text NOT NULL,
	"delete_at" bigint
);
--> statement-breakpoint
CREATE TABLE "hook_secrets" (
	"id" text PRIMARY KEY NOT NULL,
	"trigger_id" text NOT NULL,
	"sealed" text NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint
);
--> statement-breakpoint
CREATE TABLE "hooks" (
	"trigger_id" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "firings" ALTER COLUMN "occasion" SET DATA TYPE text COLLATE "C";--> statement-breakpoint
ALTER TABLE "firings" ADD COLUMN "deliveries" bigint;--> statement-breakpoint
ALTER TABLE "hook_bodies" ADD CONSTRAINT "hook_bodies_firing_id_firings_id_fk" FOREIGN KEY ("firing_id") REFERENCES "public"."firings"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "hook_secrets" ADD CONSTRAINT "hook_secrets_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "hooks" ADD CONSTRAINT "hooks_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "hook_bodies_delete_at" ON "hook_bodies" USING btree ("delete_at");--> statement-breakpoint
CREATE INDEX "hook_secrets_trigger" ON "hook_secrets" USING btree ("trigger_id");--> statement-breakpoint
CREATE UNIQUE INDEX "hooks_token" ON "hooks" USING btree ("token");