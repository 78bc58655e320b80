// The hub's tables of runs: what daemons report of them, with their phases, logs, files and reviews.

import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Json, JsonObject } from '../../lib/json.ts'
import type { Explanation, LineRange, RunError, TurnView } from '../../lib/wire/records/run-records.ts'
import type { StartedBy } from '../../lib/wire/records/started-by.ts'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

/** The bytes of values that lie in `large_values`, by their columns. */
export type Beside = Readonly<Record<string, number>>

type Starters = Record<'run_id' | 'root_run_id' | 'starter_kind', SQLiteColumn>

/**
 * What kind started a top run, as the indexes have it, so that lists and their counts need not look at the runs themselves:
 * `unknown` where nobody says. Null of a sub-run. A comma would make two columns of it in SQLite's migration.
 */
export const kindOfStarter = ({ run_id, root_run_id, starter_kind }: Starters): SQL =>
  sql`(CASE WHEN ${run_id} <> ${root_run_id} THEN NULL WHEN ${starter_kind} IS NULL THEN 'unknown' ELSE ${starter_kind} END)`

/** A run that has not ended: few of all are. */
export const isLive = ({ state }: Record<'state', SQLiteColumn>): SQL =>
  sql`${state} IN ('queued', 'running', 'awaiting_input')`

export function runTables(
  { table, index, primaryKey, id, text, key, startOf, afterScope, inIndex, int, bool, json }: Columns,
  { realms }: ReturnType<typeof tenancyTables>,
) {
  const runs = table(
    'runs',
    {
      run_id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
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
      /** How many failures it passed over. Null: it did not complete, or its daemon does not say. */
      tolerated: int(),
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
      // In SQLite with the whole name, so that the runs of a team are counted by the index alone.
      index('runs_team').on(row.realm_id, afterScope(row.team), row.run_id, ...inIndex(row.team)),
      index('runs_live').on(row.realm_id, row.run_id).where(isLive(row)),
      // The kind of every top run, and of no other run.
      index('runs_started_by')
        .on(row.realm_id, kindOfStarter(row), row.run_id)
        .where(sql`${kindOfStarter(row)} IS NOT NULL`),
      index('runs_started_by_name')
        .on(row.realm_id, kindOfStarter(row), row.starter_name, row.run_id)
        .where(sql`${kindOfStarter(row)} IS NOT NULL`),
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
      next: json<JsonObject>(),
      shown: json<JsonObject>(),
      /** Whether its daemon does not say what its approval leads to. Null: an older daemon, which never says it. */
      keeps_next: bool(),
      expires_at: int(),
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

  return { runs, phases, largeValues, explanations, logs, events, artifacts, keptFiles, receipts, reviews }
}
