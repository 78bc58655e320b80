// The hub's tables of runs: daemons, published teams, runs with their phases and logs, and the queue.

import { sql } from 'drizzle-orm'
import type { Json, JsonObject } from '../../lib/json.ts'
import type { ConcurrencyKey, WhenFull } from '../../lib/wire/concurrency.ts'
import type { Environments, Needs, OfferedAgent } from '../../lib/wire/needs.ts'
import type { Field } from '../../lib/wire/records/forms.ts'
import type { JobKind } from '../../lib/wire/records/jobs.ts'
import type { PackageFile, PackageSignature } from '../../lib/wire/records/packages.ts'
import type { Explanation, LineRange, RunError, TurnView } from '../../lib/wire/records/run-records.ts'
import type { StartedBy } from '../../lib/wire/records/started-by.ts'
import type { TriggerKind } from '../../lib/wire/records/trigger-words.ts'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

/** The bytes of values that lie in `large_values`, by their columns. */
export type Beside = Readonly<Record<string, number>>

export function runTables(
  { table, index, uniqueIndex, primaryKey, id, text, key, startOf, descending, int, bool, json }: Columns,
  { realms, tokens, scopes }: ReturnType<typeof tenancyTables>,
) {
  const ofRealm = () =>
    text()
      .notNull()
      .references(() => realms.id, { onDelete: 'cascade' })

  const daemons = table(
    'daemons',
    {
      id: text().primaryKey(),
      realm_id: ofRealm(),
      token_id: int()
        .notNull()
        .references(() => tokens.id),
      name: text().notNull(),
      hostname: text(),
      version: text(),
      /** The commit that its program is made of; null: it does not say. */
      commit: text(),
      capacity: int(),
      agents: json<OfferedAgent[]>().notNull(),
      workspaces: json<string[]>().notNull(),
      /** Null: the daemon sent none. */
      labels: json<Record<string, string>>(),
      /** Where it runs the commands of dispatched runs; null: it does not say. */
      sandbox: text(),
      /** The kinds of jobs that it takes besides those about runs; null: it does not say. */
      kinds: json<string[]>(),
      /** Where it can tell people something, as `agent:channel`; null: it does not say. */
      accounts: json<string[]>(),
      /** The environments of its settings, which runs can have there; null: it does not say. */
      environments: json<string[]>(),
      registered_at: int().notNull(),
      /** When it last called, in lived time, which decides how long it is silent. */
      last_seen_at: int().notNull(),
      /** The same by the clock, for people; null: a hub from before lived time wrote the other. */
      called_at: int(),
      stuck: bool().notNull(),
      /**
       * When the daemon was last found silent, in lived time, for the event `daemon.stale`. It counts until the daemon calls
       * again.
       */
      stale_at: int(),
      removed_at: int(),
      /** Since when it may take jobs; null while it waits for an operator of its realm. */
      approved_at: int(),
      /** Whether an operator lets it take no more runs. */
      paused: bool().notNull().default(false),
      /** The epoch of the daemon's outbox from which changes have been applied. */
      epoch: text(),
      acked_seq: int().notNull(),
      /** The latest start of its home that has called: its number, and which one of that number. Null: it does not say. */
      starts: int(),
      start: text(),
    },
    row => [index('daemons_realm').on(row.realm_id), index('daemons_token').on(row.token_id)],
  )

  const packages = table(
    'packages',
    {
      id: id(),
      scope_id: int()
        .notNull()
        .references(() => scopes.id, { onDelete: 'cascade' }),
      /** `@scope/name`. */
      name: text().notNull(),
      version: text().notNull(),
      description: text().notNull(),
      sha256: text().notNull(),
      bytes: int().notNull(),
      signature: json<PackageSignature>(),
      /** What its team.yml declares, for checking a dispatch. */
      inputs: json<Field[]>().notNull(),
      /** What its teams need of a daemon; null: it was published before that was stored. */
      needs: json<Needs>(),
      /** The key that its runs hold; null: none. */
      concurrency: json<ConcurrencyKey>(),
      /** In which environments its team.yml says that it runs; null: in any, or it was published before that was stored. */
      environments: json<Environments>(),
      /** What its team.yml says may start it; null: it was published before that was stored, and says nothing. */
      triggers: json<{ name: string; kind: TriggerKind; fields: JsonObject }[]>(),
      /** The names of the packages that it calls. */
      dependencies: json<string[]>().notNull(),
      published_at: int().notNull(),
      published_by: int().notNull(),
      yanked_at: int(),
    },
    row => [uniqueIndex('packages_version').on(row.name, row.version), index('packages_scope').on(row.scope_id)],
  )

  const packageFiles = table(
    'package_files',
    {
      package_id: int()
        .notNull()
        .references(() => packages.id, { onDelete: 'cascade' }),
      files: json<PackageFile[]>().notNull(),
    },
    row => [primaryKey({ columns: [row.package_id] })],
  )

  const runs = table(
    'runs',
    {
      run_id: text().primaryKey(),
      realm_id: ofRealm(),
      /** The daemon to which the run is pinned; null while the run waits. */
      daemon_id: text(),
      job_id: text(),
      run_name: text(),
      root_run_id: text().notNull(),
      parent_run_id: text(),
      parent_phase: text(),
      call_path: json<string[]>().notNull(),
      call_depth: int().notNull(),
      /** The sort key that orders the runs of a tree depth first. */
      tree_key: key().notNull(),
      team: text().notNull(),
      version: text(),
      state: text().notNull(),
      reason: text(),
      error: json<RunError>(),
      inputs: json<JsonObject>().notNull(),
      outputs: json<JsonObject>(),
      deliveries: json<Json[]>(),
      /** The key of a run that was dispatched; who holds it is in `key_places`. */
      concurrency_key: text(),
      workspace: text(),
      /** The environment whose settings it has on its daemon; null: the plain ones, or nobody says. */
      environment: text(),
      /** Who or what started a top run, and its kind and name for lists. Null: nobody says, or it is a sub-run. */
      started_by: json<StartedBy>(),
      starter_kind: text(),
      starter_name: text(),
      attempt: int().notNull(),
      created_at: int().notNull(),
      started_at: int(),
      completed_at: int(),
      /** How long its attempts took, in the lived time of its daemon. Null: it has not ended, or its daemon does not say. */
      lived_ms: int(),
      /** From when it is kept, by the hub's own time: the clock of a daemon may be wrong. Null: since it has ended. */
      kept_since: int(),
      /**
       * Increases within a tree with each report. A row with a greater value than a reader has seen has changed since.
       */
      rev: int().notNull().default(0),
      /** How many lines the daemon has of the log; null: it did not say. */
      log_lines: int(),
      /** The last line that the daemon has sent, or has said not to come. */
      log_last: int().notNull().default(0),
      /** Lines before that which are missing; null: none. */
      log_missing: json<LineRange[]>(),
      /** Whether no more lines are added; null: the daemon does not say. */
      log_ended: bool(),
      /** Whether the daemon keeps the lines to itself. */
      log_kept: bool().notNull().default(false),
      /** The bytes of the lines that the hub has, and whether it left lines out because the realm has no room for more. */
      log_bytes: int().notNull().default(0),
      log_cut: bool().notNull().default(false),
      /** The columns whose values lie in `large_values`, with their bytes; null: none. */
      beside: json<Beside>(),
    },
    row => [
      index('runs_tree').on(row.root_run_id, startOf(row.tree_key)),
      index('runs_rev').on(row.root_run_id, row.rev),
      index('runs_realm').on(row.realm_id, row.run_id),
      index('runs_state').on(row.realm_id, row.state, row.run_id),
      index('runs_starter_kind')
        .on(row.realm_id, row.starter_kind, row.run_id)
        .where(sql`${row.run_id} = ${row.root_run_id}`),
      index('runs_starter')
        .on(row.realm_id, row.starter_kind, row.starter_name, row.run_id)
        .where(sql`${row.run_id} = ${row.root_run_id}`),
      index('runs_completed').on(row.completed_at),
      index('runs_kept')
        // A comma would make two columns of it in SQLite's migration.
        .on(sql`(CASE WHEN ${row.kept_since} IS NULL THEN ${row.completed_at} ELSE ${row.kept_since} END)`)
        .where(sql`${row.run_id} = ${row.root_run_id}`),
    ],
  )

  const runOf = () =>
    text()
      .notNull()
      .references(() => runs.run_id, { onDelete: 'cascade' })

  const phases = table(
    'phases',
    {
      run_id: runOf(),
      index: int().notNull(),
      name: text().notNull(),
      type: text().notNull(),
      agent: text(),
      action: text(),
      state: text().notNull(),
      reason: text(),
      attempt: int().notNull(),
      depends_on: json<string[]>().notNull(),
      started_at: int(),
      completed_at: int(),
      error: json<RunError>(),
      ok: bool(),
      text: text().notNull(),
      data: json<Json>(),
      /** Empty: the files of a phase are rows of `artifacts`. */
      files: json<Json[]>().notNull(),
      /** Of a phase with `repeat`: the last hundred. Null without, and of older daemons. */
      turns: json<TurnView[]>(),
      beside: json<Beside>(),
    },
    row => [primaryKey({ columns: [row.run_id, row.index] })],
  )

  /**
   * What is large of runs, phases and reviews, so that lists need not read it: the JSON of one column, in whose place its
   * row has little or nothing.
   */
  const largeValues = table(
    'large_values',
    {
      run_id: runOf(),
      /** Empty for the run itself, `phase <index>`, or `review <id>`. */
      owner: text().notNull(),
      /** The column. */
      name: text().notNull(),
      value: text().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.owner, row.name] })],
  )

  /** What daemons say of why their runs ended or wait. It counts while the run is in this attempt and state. */
  const explanations = table(
    'explanations',
    {
      run_id: runOf(),
      attempt: int().notNull(),
      state: text().notNull(),
      why: json<Explanation>().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id] })],
  )

  const logs = table(
    'logs',
    {
      run_id: runOf(),
      seq: int().notNull(),
      phase: text(),
      at: int().notNull(),
      stream: text().notNull(),
      text: text().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.seq] })],
  )

  const events = table(
    'events',
    {
      id: id(),
      run_id: runOf(),
      name: text().notNull(),
      phase: text(),
      at: int().notNull(),
      data: json<Json>(),
    },
    row => [index('events_run').on(row.run_id, row.id)],
  )

  const artifacts = table(
    'artifacts',
    {
      run_id: runOf(),
      path: text().notNull(),
      phase: text().notNull(),
      name: text().notNull(),
      bytes: int().notNull(),
      sha256: text().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.path] }), index('artifacts_content').on(row.run_id, row.sha256)],
  )

  /** Files of runs in the store of `CADRE_ARTIFACTS`, each once a tree. */
  const keptFiles = table(
    'kept_files',
    {
      realm_id: text().notNull(),
      root_run_id: text().notNull(),
      sha256: text().notNull(),
      bytes: int().notNull(),
      /** The top run while it exists. When it is deleted this becomes null, and the file is to be removed. */
      kept_for: text().references(() => runs.run_id, { onDelete: 'set null' }),
      /** When a daemon last got the means to send it, in lived time. */
      asked_at: int().notNull(),
      /** Since when the store has it. */
      stored_at: int(),
    },
    row => [
      primaryKey({ columns: [row.root_run_id, row.sha256] }),
      index('kept_files_for').on(row.kept_for, row.asked_at),
    ],
  )

  const receipts = table(
    'receipts',
    {
      run_id: runOf(),
      phase: text().notNull(),
      entry: text().notNull(),
      state: text().notNull(),
      receipt: json<JsonObject>().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.phase, row.entry] })],
  )

  const reviews = table(
    'reviews',
    {
      id: text().primaryKey(),
      run_id: runOf(),
      realm_id: text().notNull(),
      run_name: text(),
      phase: text().notNull(),
      entries: json<Json[]>().notNull(),
      kind: text().notNull(),
      reason: text(),
      prompt: text(),
      inputs: json<Json[]>().notNull(),
      reviewers: json<string[]>().notNull(),
      state: text().notNull(),
      decision: text(),
      decided_by: text(),
      comment: text(),
      created_at: int().notNull(),
      /**
       * Its place in lists, in lived time: when it was first reported, less its age then, so that a step of the clock of its
       * daemon changes no order. Null: a hub from before that was stored wrote it.
       */
      placed_at: int(),
      decided_at: int(),
      beside: json<Beside>(),
    },
    row => [index('reviews_realm').on(row.realm_id, row.state), index('reviews_run').on(row.run_id)],
  )

  const jobs = table(
    'jobs',
    {
      id: text().primaryKey(),
      realm_id: ofRealm(),
      run_id: runOf(),
      kind: text().$type<JobKind>().notNull(),
      payload: json<JsonObject>().notNull(),
      priority: int().notNull(),
      state: text()
        .$type<'blocked' | 'held' | 'waiting' | 'leased' | 'accepted' | 'done' | 'failed' | 'dead' | 'cancelled'>()
        .notNull(),
      /** The only daemon that may take the job: chosen at dispatch, or the one to which the run is pinned. */
      daemon_id: text(),
      /** The name of a workspace that the daemon must have. */
      workspace: text(),
      /** What the daemon must have, the workspace included; null: any daemon will do. */
      needs: json<Needs & { workspace: string | null }>(),
      /** The same for jobs that need the same, so that a poll finds only jobs that its daemon may take. */
      needs_key: text().notNull().default(''),
      /** The daemon that holds or held the lease. */
      leased_to: text(),
      lease_id: text(),
      /** In lived time. */
      lease_until: int(),
      deliveries: int().notNull(),
      /** In lived time, so that a step of the clock changes no order. */
      created_at: int().notNull(),
      /** The same by the clock, for people; null: a hub from before lived time wrote the other. */
      asked_at: int(),
      /** The end of the `queue_timeout`, in lived time. */
      expires_at: int(),
      /** In lived time. */
      finished_at: int(),
      error: text(),
      idempotency_key: text(),
      created_by: int().notNull(),
      /** The older copy in which the job waited. A daemon may have executed it since. */
      copy_id: text(),
    },
    row => [
      // Each has the jobs of some statements only, so that none serves in place of another: as long as PostgreSQL has not
      // analysed the table, it takes any of several indexes that begin alike. A statement uses such an index only when the
      // states stand in its text (`inState` in lib/hub/core/job-rows.ts).
      index('jobs_queue')
        .on(row.realm_id, row.kind, row.daemon_id, row.needs_key, descending(row.priority), row.created_at, row.id)
        .where(sql`${row.state} = 'waiting'`),
      index('jobs_lease').on(row.realm_id, row.lease_until).where(sql`${row.state} = 'leased'`),
      index('jobs_expiry')
        .on(row.realm_id, row.expires_at)
        .where(sql`${row.state} in ('waiting', 'blocked') and ${row.expires_at} is not null`),
      index('jobs_open').on(row.realm_id, row.created_at, row.id).where(sql`${row.finished_at} is null`),
      index('jobs_held').on(row.realm_id, row.copy_id).where(sql`${row.state} = 'held'`),
      index('jobs_run').on(row.run_id),
      uniqueIndex('jobs_idempotency')
        .on(row.realm_id, row.idempotency_key)
        .where(sql`${row.idempotency_key} is not null`),
    ],
  )

  /** The dispatched runs that hold a concurrency key or wait for it. Runs without a key have no row. */
  const concurrencyKeys = table(
    'key_places',
    {
      run_id: runOf(),
      realm_id: text().notNull(),
      key: text().notNull(),
      /** How many runs may hold the key at once, as the team of this run says. */
      most: int().notNull(),
      when_full: text().$type<WhenFull>().notNull(),
      state: text().$type<'waits' | 'holds' | 'ended'>().notNull(),
      /** Decides the order in which runs came: greater than those of all that came before. */
      since: int().notNull(),
      /** Whether the run was asked to end. */
      ending: bool().notNull(),
    },
    row => [
      primaryKey({ columns: [row.run_id] }),
      index('key_places_turns').on(row.state, row.realm_id, row.key, row.since, row.run_id),
    ],
  )

  return {
    daemons,
    packages,
    packageFiles,
    runs,
    phases,
    largeValues,
    explanations,
    logs,
    events,
    artifacts,
    keptFiles,
    receipts,
    reviews,
    jobs,
    concurrencyKeys,
  }
}
