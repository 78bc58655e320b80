// What the database holds, for `GET /metrics`. Names follow OpenTelemetry's conventions for CI/CD where these have one
// (https://opentelemetry.io/docs/specs/semconv/cicd/cicd-metrics/): a top run is a pipeline run, a daemon is a worker.

import { and, count, eq, isNotNull, isNull, min, sql } from 'drizzle-orm'
import { gauge, type Sample } from '../http/metrics.ts'
import { statusColumn } from './access/daemons.ts'
import type { ChoreOutcome } from './core/chore.ts'
import type { Hub } from './core/hub.ts'

/** The state of a run in the words of the conventions. */
const RUN_STATES: Readonly<Record<string, string>> = { queued: 'pending', running: 'executing' }

/** What the database holds. Every hub answers the same. */
export async function stored(hub: Hub): Promise<string> {
  const { db, jobs, realms, runs, daemons, webhookDeliveries } = hub.store
  const now = hub.lived()
  const many = count()
  // Jobs that have ended are not counted: the others are found by an index, however many those are.
  const open = and(eq(jobs.realm_id, realms.id), isNull(jobs.finished_at))
  const jobRows = await db
    .select({ realm: realms.id, state: jobs.state, many, oldest: min(jobs.created_at) })
    .from(realms)
    .innerJoin(jobs, open)
    .groupBy(realms.id, jobs.state)
  const runRows = await db
    .select({ realm: runs.realm_id, state: runs.state, many })
    .from(runs)
    .where(and(isNull(runs.completed_at), isNull(runs.parent_run_id)))
    .groupBy(runs.realm_id, runs.state)
  const status = statusColumn(hub.store, now)
  const daemonRows = await db
    .select({ realm: daemons.realm_id, status, many })
    .from(daemons)
    .where(isNull(daemons.removed_at))
    .groupBy(daemons.realm_id, sql`2`)
  const [messages] = await db.select({ many }).from(webhookDeliveries).where(isNotNull(webhookDeliveries.next_at))
  const waiting = jobRows.filter(({ state }) => state === 'waiting')
  return [
    gauge(
      'cadre_jobs',
      'Jobs that have not ended, by realm and state.',
      jobRows.map(({ realm, state, many }): Sample => [{ realm, state }, Number(many)]),
    ),
    gauge(
      'cadre_jobs_oldest_waiting_seconds',
      'How long the oldest job that no daemon has taken has waited.',
      waiting.map(({ realm, oldest }): Sample => [{ realm }, Math.max(0, now - Number(oldest)) / 1_000]),
    ),
    gauge(
      'cicd_pipeline_run_active',
      'Top runs that have not ended, by realm and state.',
      runRows.map(
        ({ realm, state, many }): Sample => [
          { realm, cicd_pipeline_run_state: RUN_STATES[state] ?? state },
          Number(many),
        ],
      ),
    ),
    gauge(
      'cicd_worker_count',
      'Daemons, by realm and state.',
      daemonRows.map(({ realm, status, many }): Sample => [{ realm, cicd_worker_state: status }, Number(many)]),
    ),
    gauge('cadre_hub_older_copy', 'Whether the hub is on an older copy of its database and holds what waited in it.', [
      [{}, hub.lineage.isOlderCopy ? 1 : 0],
    ]),
    ...(await choreGauges(hub)),
    gauge('cadre_hub_clock_ahead_seconds', 'By how much the clock of this hub is ahead of that of the database.', [
      [{}, hub.clock.ahead() / 1_000],
    ]),
    gauge('cadre_hub_clocks_apart_seconds', 'By how much the clocks of hubs on the same database differ.', [
      [{}, hub.clocksApart.ms / 1_000],
    ]),
    ...connectionGauges(hub),
    ...backupGauges(hub),
    gauge('cadre_webhook_messages_waiting', 'Messages to webhooks that are to be sent.', [
      [{}, Number(messages!.many)],
    ]),
  ].join('')
}

/** What came of each chore, whichever hub does it, and of those that this hub does for itself. */
async function choreGauges({ store, ownChores }: Hub): Promise<string[]> {
  const rows: (ChoreOutcome & { name: string })[] = await store.db.select().from(store.chores)
  const all = [...rows, ...[...ownChores].map(([name, outcome]) => ({ name, ...outcome }))]
  const samples = (of: (outcome: ChoreOutcome) => number | null): Sample[] =>
    all.flatMap(({ name: chore, ...outcome }) => {
      const value = of(outcome)
      return value === null ? [] : [[{ chore }, value] as const]
    })
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1_000)
  return [
    gauge(
      'cadre_chore_last_run_timestamp_seconds',
      'When the last run of a chore ended.',
      samples(({ last_run_at }) => seconds(last_run_at)),
    ),
    gauge(
      'cadre_chore_last_run_duration_seconds',
      'How long the last run of a chore took.',
      samples(({ last_run_ms }) => seconds(last_run_ms)),
    ),
    gauge(
      'cadre_chore_last_error_timestamp_seconds',
      'When a run of a chore failed last.',
      samples(({ last_error_at }) => seconds(last_error_at)),
    ),
    gauge(
      'cadre_chore_failing',
      'Whether the last run of a chore failed.',
      samples(({ last_run_at, last_error }) => (last_run_at === null ? null : Number(last_error !== null))),
    ),
  ]
}

function backupGauges({ backups, now }: Hub): string[] {
  if (!backups) return []
  const newest = backups.newest(now())
  const samples = (value: number | undefined): Sample[] => (value === undefined ? [] : [[{}, value]])
  return [
    gauge(
      'cadre_hub_backup_last_timestamp_seconds',
      'When the newest backup of the database was begun.',
      samples(newest ? newest.at / 1_000 : undefined),
    ),
    gauge('cadre_hub_backup_last_bytes', 'The size of the newest backup of the database.', samples(newest?.bytes)),
  ]
}

/** Those of this process. */
function connectionGauges({ store }: Hub): string[] {
  const figures = store.connections()
  if (!figures) return []
  const { busy, idle, waiting } = figures
  return [
    gauge('cadre_hub_database_connections', 'Connections of this hub to PostgreSQL, by state.', [
      [{ state: 'busy' }, busy],
      [{ state: 'idle' }, idle],
    ]),
    gauge('cadre_hub_database_waiting', 'Calls to this hub that wait for a connection to PostgreSQL.', [[{}, waiting]]),
  ]
}
