CREATE TABLE "chores" (
	"name" text PRIMARY KEY NOT NULL,
	"holder" text,
	"lease_until" bigint DEFAULT 0 NOT NULL,
	"last_run_at" bigint,
	"last_run_ms" bigint,
	"last_error" text,
	"last_error_at" bigint
);
