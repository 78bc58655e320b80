CREATE TABLE "key_places" (
	"run_id" text NOT NULL,
	"realm_id" text NOT NULL,
	"key" text NOT NULL,
	"most" bigint NOT NULL,
	"when_full" text NOT NULL,
	"state" text NOT NULL,
	"since" bigint NOT NULL,
	"ending" boolean NOT NULL,
	CONSTRAINT "key_places_run_id_pk" PRIMARY KEY("run_id")
);
--> statement-breakpoint
ALTER TABLE "packages" ADD COLUMN "concurrency" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "concurrency_key" text;--> statement-breakpoint
ALTER TABLE "key_places" ADD CONSTRAINT "key_places_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "key_places_turns" ON "key_places" USING btree ("state","realm_id","key","since","run_id");