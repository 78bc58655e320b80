CREATE TABLE "explanations" (
	"run_id" text NOT NULL,
	"attempt" bigint NOT NULL,
	"state" text NOT NULL,
	"why" text NOT NULL,
	CONSTRAINT "explanations_run_id_pk" PRIMARY KEY("run_id")
);
--> statement-breakpoint
ALTER TABLE "explanations" ADD CONSTRAINT "explanations_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;