CREATE TABLE "tells" (
	"id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"account" text NOT NULL,
	"text" text NOT NULL,
	"subject" text NOT NULL,
	"once" text NOT NULL,
	"state" text NOT NULL,
	"leased_to" text,
	"lease_id" text,
	"lease_until" bigint,
	"deliveries" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"finished_at" bigint,
	"error" text
);
--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "kinds" text;--> statement-breakpoint
ALTER TABLE "daemons" ADD COLUMN "accounts" text;--> statement-breakpoint
ALTER TABLE "realms" ADD COLUMN "notify" text;--> statement-breakpoint
ALTER TABLE "tells" ADD CONSTRAINT "tells_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "tells_open" ON "tells" USING btree ("realm_id","created_at") WHERE "tells"."finished_at" is null;--> statement-breakpoint
CREATE INDEX "tells_subject" ON "tells" USING btree ("realm_id","subject","account","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "tells_once" ON "tells" USING btree ("realm_id","account","once");--> statement-breakpoint
CREATE INDEX "tells_finished" ON "tells" USING btree ("finished_at");