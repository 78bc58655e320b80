CREATE TABLE "artifacts" (
	"run_id" text NOT NULL,
	"path" text NOT NULL,
	"phase" text NOT NULL,
	"name" text NOT NULL,
	"bytes" bigint NOT NULL,
	"sha256" text NOT NULL,
	CONSTRAINT "artifacts_run_id_path_pk" PRIMARY KEY("run_id","path")
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"at" bigint NOT NULL,
	"user_id" bigint,
	"username" text,
	"token_id" bigint,
	"org_id" bigint,
	"realm_id" text,
	"action" text NOT NULL,
	"target" text
);
--> statement-breakpoint
CREATE TABLE "daemons" (
	"id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"token_id" bigint NOT NULL,
	"name" text NOT NULL,
	"hostname" text,
	"version" text,
	"capacity" bigint,
	"agents" text NOT NULL,
	"workspaces" text NOT NULL,
	"registered_at" bigint NOT NULL,
	"last_seen_at" bigint NOT NULL,
	"stuck" boolean NOT NULL,
	"removed_at" bigint,
	"epoch" text,
	"acked_seq" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "dispatch_keys" (
	"kid" text PRIMARY KEY NOT NULL,
	"org_id" bigint NOT NULL,
	"public_pem" text NOT NULL,
	"private_key" text NOT NULL,
	"created_at" bigint NOT NULL,
	"not_after" bigint
);
--> statement-breakpoint
CREATE TABLE "events" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"run_id" text NOT NULL,
	"name" text NOT NULL,
	"phase" text,
	"at" bigint NOT NULL,
	"data" text
);
--> statement-breakpoint
CREATE TABLE "invitations" (
	"id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"role" text NOT NULL,
	"username" text,
	"hash" text NOT NULL,
	"created_by" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"accepted_at" bigint,
	CONSTRAINT "invitations_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"run_id" text NOT NULL,
	"kind" text NOT NULL,
	"payload" text NOT NULL,
	"priority" bigint NOT NULL,
	"state" text NOT NULL,
	"daemon_id" text,
	"workspace" text,
	"leased_to" text,
	"lease_id" text,
	"lease_until" bigint,
	"deliveries" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint,
	"finished_at" bigint,
	"error" text,
	"idempotency_key" text,
	"created_by" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "logs" (
	"run_id" text NOT NULL,
	"seq" bigint NOT NULL,
	"phase" text,
	"at" bigint NOT NULL,
	"stream" text NOT NULL,
	"text" text NOT NULL,
	CONSTRAINT "logs_run_id_seq_pk" PRIMARY KEY("run_id","seq")
);
--> statement-breakpoint
CREATE TABLE "org_members" (
	"org_id" bigint NOT NULL,
	"user_id" bigint NOT NULL,
	"role" text NOT NULL,
	CONSTRAINT "org_members_org_id_user_id_pk" PRIMARY KEY("org_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "orgs" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "orgs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"slug" text NOT NULL,
	"display_name" text NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "orgs_slug_unique" UNIQUE("slug")
);
--> statement-breakpoint
CREATE TABLE "package_files" (
	"package_id" bigint NOT NULL,
	"files" text NOT NULL,
	CONSTRAINT "package_files_package_id_pk" PRIMARY KEY("package_id")
);
--> statement-breakpoint
CREATE TABLE "packages" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "packages_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"scope_id" bigint NOT NULL,
	"name" text NOT NULL,
	"version" text NOT NULL,
	"description" text NOT NULL,
	"sha256" text NOT NULL,
	"bytes" bigint NOT NULL,
	"inputs" text NOT NULL,
	"dependencies" text NOT NULL,
	"published_at" bigint NOT NULL,
	"published_by" bigint NOT NULL,
	"yanked_at" bigint
);
--> statement-breakpoint
CREATE TABLE "phases" (
	"run_id" text NOT NULL,
	"index" bigint NOT NULL,
	"name" text NOT NULL,
	"type" text NOT NULL,
	"agent" text,
	"action" text,
	"state" text NOT NULL,
	"reason" text,
	"attempt" bigint NOT NULL,
	"depends_on" text NOT NULL,
	"started_at" bigint,
	"completed_at" bigint,
	"error" text,
	"ok" boolean,
	"text" text NOT NULL,
	"data" text,
	"files" text NOT NULL,
	CONSTRAINT "phases_run_id_index_pk" PRIMARY KEY("run_id","index")
);
--> statement-breakpoint
CREATE TABLE "realm_members" (
	"realm_id" text NOT NULL,
	"user_id" bigint NOT NULL,
	"role" text NOT NULL,
	CONSTRAINT "realm_members_realm_id_user_id_pk" PRIMARY KEY("realm_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "realm_teams" (
	"realm_id" text NOT NULL,
	"team" text NOT NULL,
	"added_at" bigint NOT NULL,
	CONSTRAINT "realm_teams_realm_id_team_pk" PRIMARY KEY("realm_id","team")
);
--> statement-breakpoint
CREATE TABLE "realms" (
	"id" text PRIMARY KEY NOT NULL,
	"org_id" bigint NOT NULL,
	"slug" text NOT NULL,
	"name" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "receipts" (
	"run_id" text NOT NULL,
	"phase" text NOT NULL,
	"entry" text NOT NULL,
	"state" text NOT NULL,
	"receipt" text NOT NULL,
	CONSTRAINT "receipts_run_id_phase_entry_pk" PRIMARY KEY("run_id","phase","entry")
);
--> statement-breakpoint
CREATE TABLE "reviews" (
	"id" text PRIMARY KEY NOT NULL,
	"run_id" text NOT NULL,
	"realm_id" text NOT NULL,
	"run_name" text,
	"phase" text NOT NULL,
	"entries" text NOT NULL,
	"kind" text NOT NULL,
	"reason" text,
	"prompt" text,
	"inputs" text NOT NULL,
	"reviewers" text NOT NULL,
	"state" text NOT NULL,
	"decision" text,
	"decided_by" text,
	"comment" text,
	"created_at" bigint NOT NULL,
	"decided_at" bigint
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"run_id" text PRIMARY KEY NOT NULL,
	"realm_id" text NOT NULL,
	"daemon_id" text,
	"job_id" text,
	"run_name" text,
	"root_run_id" text NOT NULL,
	"parent_run_id" text,
	"parent_phase" text,
	"call_path" text NOT NULL,
	"call_depth" bigint NOT NULL,
	"tree_key" text NOT NULL,
	"team" text NOT NULL,
	"version" text,
	"state" text NOT NULL,
	"reason" text,
	"error" text,
	"inputs" text NOT NULL,
	"outputs" text,
	"deliveries" text,
	"workspace" text,
	"attempt" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"started_at" bigint,
	"completed_at" bigint
);
--> statement-breakpoint
CREATE TABLE "scope_members" (
	"scope_id" bigint NOT NULL,
	"user_id" bigint NOT NULL,
	"role" text NOT NULL,
	CONSTRAINT "scope_members_scope_id_user_id_pk" PRIMARY KEY("scope_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "scopes" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "scopes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"org_id" bigint NOT NULL,
	"slug" text NOT NULL,
	"display_name" text NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "scopes_slug_unique" UNIQUE("slug")
);
--> statement-breakpoint
CREATE TABLE "token_realms" (
	"token_id" bigint NOT NULL,
	"realm_id" text NOT NULL,
	CONSTRAINT "token_realms_token_id_realm_id_pk" PRIMARY KEY("token_id","realm_id")
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tokens_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"user_id" bigint NOT NULL,
	"type" text NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"hash" text NOT NULL,
	"grant" text NOT NULL,
	"created_at" bigint NOT NULL,
	"last_used_at" bigint,
	"expires_at" bigint,
	"revoked_at" bigint,
	CONSTRAINT "tokens_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "users_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"username" text NOT NULL,
	"password_hash" text NOT NULL,
	"site_admin" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"suspended_at" bigint,
	CONSTRAINT "users_username_unique" UNIQUE("username")
);
--> statement-breakpoint
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "daemons" ADD CONSTRAINT "daemons_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "daemons" ADD CONSTRAINT "daemons_token_id_tokens_id_fk" FOREIGN KEY ("token_id") REFERENCES "public"."tokens"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "dispatch_keys" ADD CONSTRAINT "dispatch_keys_org_id_orgs_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."orgs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitations" ADD CONSTRAINT "invitations_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "logs" ADD CONSTRAINT "logs_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "org_members" ADD CONSTRAINT "org_members_org_id_orgs_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."orgs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "org_members" ADD CONSTRAINT "org_members_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "package_files" ADD CONSTRAINT "package_files_package_id_packages_id_fk" FOREIGN KEY ("package_id") REFERENCES "public"."packages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "packages" ADD CONSTRAINT "packages_scope_id_scopes_id_fk" FOREIGN KEY ("scope_id") REFERENCES "public"."scopes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "phases" ADD CONSTRAINT "phases_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "realm_members" ADD CONSTRAINT "realm_members_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "realm_members" ADD CONSTRAINT "realm_members_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "realm_teams" ADD CONSTRAINT "realm_teams_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "realms" ADD CONSTRAINT "realms_org_id_orgs_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."orgs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "receipts" ADD CONSTRAINT "receipts_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "reviews" ADD CONSTRAINT "reviews_run_id_runs_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("run_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "scope_members" ADD CONSTRAINT "scope_members_scope_id_scopes_id_fk" FOREIGN KEY ("scope_id") REFERENCES "public"."scopes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "scope_members" ADD CONSTRAINT "scope_members_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "scopes" ADD CONSTRAINT "scopes_org_id_orgs_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."orgs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "token_realms" ADD CONSTRAINT "token_realms_token_id_tokens_id_fk" FOREIGN KEY ("token_id") REFERENCES "public"."tokens"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "token_realms" ADD CONSTRAINT "token_realms_realm_id_realms_id_fk" FOREIGN KEY ("realm_id") REFERENCES "public"."realms"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_org" ON "audit" USING btree ("org_id","id");--> statement-breakpoint
CREATE INDEX "daemons_realm" ON "daemons" USING btree ("realm_id");--> statement-breakpoint
CREATE INDEX "daemons_token" ON "daemons" USING btree ("token_id");--> statement-breakpoint
CREATE INDEX "dispatch_keys_org" ON "dispatch_keys" USING btree ("org_id");--> statement-breakpoint
CREATE INDEX "events_run" ON "events" USING btree ("run_id","id");--> statement-breakpoint
CREATE INDEX "invitations_realm" ON "invitations" USING btree ("realm_id");--> statement-breakpoint
CREATE INDEX "jobs_queue" ON "jobs" USING btree ("realm_id","state","priority","created_at");--> statement-breakpoint
CREATE INDEX "jobs_run" ON "jobs" USING btree ("run_id");--> statement-breakpoint
CREATE UNIQUE INDEX "jobs_idempotency" ON "jobs" USING btree ("realm_id","idempotency_key");--> statement-breakpoint
CREATE INDEX "org_members_user" ON "org_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "packages_version" ON "packages" USING btree ("name","version");--> statement-breakpoint
CREATE INDEX "packages_scope" ON "packages" USING btree ("scope_id");--> statement-breakpoint
CREATE INDEX "realm_members_user" ON "realm_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "realms_slug" ON "realms" USING btree ("org_id","slug");--> statement-breakpoint
CREATE INDEX "reviews_realm" ON "reviews" USING btree ("realm_id","state");--> statement-breakpoint
CREATE INDEX "reviews_run" ON "reviews" USING btree ("run_id");--> statement-breakpoint
CREATE INDEX "runs_tree" ON "runs" USING btree ("root_run_id","tree_key");--> statement-breakpoint
CREATE INDEX "runs_realm" ON "runs" USING btree ("realm_id","created_at");--> statement-breakpoint
CREATE INDEX "runs_completed" ON "runs" USING btree ("completed_at");--> statement-breakpoint
CREATE INDEX "scope_members_user" ON "scope_members" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "scopes_org" ON "scopes" USING btree ("org_id");--> statement-breakpoint
CREATE INDEX "token_realms_realm" ON "token_realms" USING btree ("realm_id");--> statement-breakpoint
CREATE INDEX "tokens_user" ON "tokens" USING btree ("user_id","id");