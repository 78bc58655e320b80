CREATE TABLE "kept_files" (
	"realm_id" text NOT NULL,
	"root_run_id" text NOT NULL,
	"sha256" text NOT NULL,
	"bytes" bigint NOT NULL,
	"kept_for" text,
	"asked_at" bigint NOT NULL,
	"stored_at" bigint,
	CONSTRAINT "kept_files_root_run_id_sha256_pk" PRIMARY KEY("root_run_id","sha256")
);
--> statement-breakpoint
ALTER TABLE "kept_files" ADD CONSTRAINT "kept_files_kept_for_runs_run_id_fk" FOREIGN KEY ("kept_for") REFERENCES "public"."runs"("run_id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "kept_files_for" ON "kept_files" USING btree ("kept_for","asked_at");