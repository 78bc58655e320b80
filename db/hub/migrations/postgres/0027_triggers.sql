CREATE TABLE "firings" (
	"seq" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "firings_seq_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"id" text NOT NULL,
	"trigger_id" text NOT NULL,
	"revision" bigint NOT NULL,
	"occasion" text NOT NULL,
	"at" bigint NOT NULL,
	"until" bigint,
	"seen_at" bigint NOT NULL,
	"started_at" bigint,
	"state" text NOT NULL,
	"reason" text,
	"detail" text,
	"run_id" text,
	"count" bigint NOT NULL,
	"late_ms" bigint,
	"manual" text,
	"variables" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "triggers" (
	"id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"spec" text NOT NULL,
	"revision" bigint NOT NULL,
	"source" text NOT NULL,
	"enabled" boolean NOT NULL,
	"paused" text,
	"problem" text,
	"cursor" bigint NOT NULL,
	"next_at" bigint,
	"owner_id" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"created_by" text NOT NULL,
	"removed_at" bigint
);
--> statement-breakpoint
ALTER TABLE "firings" ADD CONSTRAINT "firings_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_owner_id_users_id_fk" FOREIGN KEY ("owner_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "firings_occasion" ON "firings" USING btree ("trigger_id","occasion");--> statement-breakpoint
CREATE UNIQUE INDEX "firings_id" ON "firings" USING btree ("id");--> statement-breakpoint
CREATE INDEX "firings_trigger" ON "firings" USING btree ("trigger_id","seq");--> statement-breakpoint
CREATE INDEX "firings_waiting" ON "firings" USING btree ("trigger_id","seq") WHERE "firings"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX "firings_started" ON "firings" USING btree ("trigger_id","started_at") WHERE "firings"."started_at" is not null;--> statement-breakpoint
CREATE INDEX "firings_run" ON "firings" USING btree ("run_id") WHERE "firings"."run_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "triggers_name" ON "triggers" USING btree ("realm_id","name") WHERE "triggers"."removed_at" is null;--> statement-breakpoint
CREATE INDEX "triggers_due" ON "triggers" USING btree ("next_at") WHERE "triggers"."next_at" is not null;--> statement-breakpoint
CREATE INDEX "triggers_ahead" ON "triggers" USING btree ("cursor") WHERE "triggers"."next_at" is not null;--> statement-breakpoint
CREATE INDEX "triggers_owner" ON "triggers" USING btree ("owner_id");--> statement-breakpoint
CREATE INDEX "triggers_removed" ON "triggers" USING btree ("removed_at") WHERE "triggers"."removed_at" is not null;