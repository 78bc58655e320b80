CREATE TABLE "run_ends" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "run_ends_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"realm_id" text NOT NULL,
	"run" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "firings" ADD COLUMN "end_id" bigint;--> statement-breakpoint
ALTER TABLE "run_ends" ADD CONSTRAINT "run_ends_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "run_ends_realm" ON "run_ends" USING btree ("realm_id");--> statement-breakpoint
CREATE INDEX "firings_end" ON "firings" USING btree ("end_id") WHERE "firings"."end_id" is not null;