// The hub's tables of the queue: jobs, and the concurrency keys for which dispatched runs wait.

import { sql } from 'drizzle-orm'
import type { JsonObject } from '../../lib/json.ts'
import type { WhenFull } from '../../lib/wire/concurrency.ts'
import type { Needs } from '../../lib/wire/needs.ts'
import type { JobKind } from '../../lib/wire/records/jobs.ts'
import type { Columns } from './columns.ts'
import type { runTables } from './run-tables.ts'
import type { tenancyTables } from './tenancy-tables.ts'

export function queueTables(
  { table, index, uniqueIndex, primaryKey, text, descending, int, bool, json }: Columns,
  { realms }: ReturnType<typeof tenancyTables>,
  { runs }: ReturnType<typeof runTables>,
) {
  const runOf = () =>
    text()
      .notNull()
      .references(() => runs.run_id, { onDelete: 'cascade' })

  const jobs = table(
    'jobs',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
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
      /** What was asked for with the key; null: by a hub that did not keep it. */
      request_mark: text(),
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
        .on(row.realm_id, row.created_by, row.idempotency_key)
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

  return { jobs, concurrencyKeys }
}
