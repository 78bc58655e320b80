// What the database holds, and what this process knows of it, for `GET /metrics`. Names follow OpenTelemetry's conventions
// for CI/CD where these have one (https://opentelemetry.io/docs/specs/semconv/cicd/cicd-metrics/): a top run is a pipeline
// run, a daemon is a worker.

import { and, count, eq, isNotNull, isNull, min, sql } from 'drizzle-orm'
import type { Store } from '../../db/hub/store.ts'
import { Counter, type Declared, Gauge, type Sample } from '../http/metrics.ts'
import { asFailure } from '../http/reply.ts'
import { startPause } from '../wait.ts'
import { isOnline, statusColumn } from './access/daemons.ts'
import type { ChoreOutcome } from './core/chore.ts'
import type { Hub } from './core/hub.ts'

const REASONS = ['database_read_only', 'database_full'] as const

/** The state of a run in the words of the conventions. */
const RUN_STATES: Readonly<Record<string, string>> = { queued: 'pending', running: 'executing' }

const DATABASE_UP = new Gauge({
  name: 'cadre_hub_database_up',
  help: 'Whether the database answers. What it would say is missing while it does not.',
})
const DEGRADED = new Gauge({
  name: 'cadre_hub_degraded',
  help: 'Whether the database takes no writes, by the reason.',
})
const OLDER_COPY = new Gauge({
  name: 'cadre_hub_older_copy',
  help: 'Whether the hub is on an older copy of its database and holds what waited in it.',
})
const CLOCK_AHEAD = new Gauge({
  name: 'cadre_hub_clock_ahead_seconds',
  help: 'By how much the clock of this hub is ahead of that of the database.',
})
const CLOCKS_APART = new Gauge({
  name: 'cadre_hub_clocks_apart_seconds',
  help: 'By how much the clocks of hubs on the same database differ.',
})
const REFUSED_STARTS = new Gauge({
  name: 'cadre_hub_refused_start',
  help: 'A hub on the same database that refused to start in the last day, by its machine and the reason.',
})
const MESSAGES = new Gauge({
  name: 'cadre_webhook_messages_waiting',
  help: 'Messages to webhooks that are to be sent.',
})

const REMOVABLE = new Gauge({
  name: 'cadre_files_removable',
  help: 'Files of deleted runs that the store still has.',
})

const CHORE_RUN = new Gauge({
  name: 'cadre_chore_last_run_timestamp_seconds',
  help: 'When the last run of a chore ended.',
})
const CHORE_DURATION = new Gauge({
  name: 'cadre_chore_last_run_duration_seconds',
  help: 'How long the last run of a chore took.',
})
const CHORE_ERROR = new Gauge({
  name: 'cadre_chore_last_error_timestamp_seconds',
  help: 'When a run of a chore failed last.',
})
const CHORE_FAILING = new Gauge({ name: 'cadre_chore_failing', help: 'Whether the last run of a chore failed.' })

const BACKUP_TIME = new Gauge({
  name: 'cadre_hub_backup_last_timestamp_seconds',
  help: 'When the newest backup of the database was begun.',
})
const BACKUP_BYTES = new Gauge({
  name: 'cadre_hub_backup_last_bytes',
  help: 'The size of the newest backup of the database.',
})

const CONNECTIONS = new Gauge({
  name: 'cadre_hub_database_connections',
  help: 'Connections of this hub to PostgreSQL, by state.',
})
const WAITING_CALLS = new Gauge({
  name: 'cadre_hub_database_waiting',
  help: 'Calls to this hub that wait for a connection to PostgreSQL.',
})

const WAITED: Declared = {
  name: 'cadre_hub_database_waited_total',
  help: 'Calls to this hub that got a connection to PostgreSQL after they had waited for it.',
}
const WAIT_SECONDS: Declared = {
  name: 'cadre_hub_database_wait_seconds_total',
  help: 'How long the calls that got a connection to PostgreSQL had waited for it.',
}
const REFUSED: Declared = {
  name: 'cadre_hub_database_refused_total',
  help: 'Calls to this hub that got no connection to PostgreSQL in time, or for which too many waited.',
}

const POLLED = new Gauge({
  name: 'cadre_hub_database_polled',
  help: 'Whether this hub polls the database for the words of other hubs, because connections keep no sessions.',
})

/** What `/metrics` says of the rows of a hub. Every hub on the database answers the same, except for `other` realms. */
export class HubMetrics {
  readonly #hub: Hub
  readonly #jobs: Gauge
  readonly #oldestJob: Gauge
  readonly #runs: Gauge
  readonly #daemons: Gauge
  readonly #clocks: Gauge

  constructor(hub: Hub) {
    this.#hub = hub
    const most = hub.metrics.series
    const open = ['realm']
    this.#jobs = new Gauge({ name: 'cadre_jobs', help: 'Jobs that have not ended, by realm and state.', open }, most)
    this.#oldestJob = new Gauge(
      {
        name: 'cadre_jobs_oldest_waiting_seconds',
        help: 'How long the oldest job that no daemon has taken has waited.',
        open,
      },
      most,
      Math.max,
    )
    this.#runs = new Gauge(
      { name: 'cicd_pipeline_run_active', help: 'Top runs that have not ended, by realm and state.', open },
      most,
    )
    // The conventions say `cicd.worker.count`. In Prometheus a name that ends in `_count` is that of a histogram.
    this.#daemons = new Gauge(
      { name: 'cicd_workers', help: 'Daemons, by realm and state.', open, was: 'cicd_worker_count' },
      most,
    )
    this.#clocks = new Gauge(
      {
        name: 'cadre_daemon_clocks_apart_seconds',
        help: 'By how much the clock of a daemon that calls differs from that of the hub at most, by realm.',
        open,
      },
      most,
      Math.max,
    )
  }

  async text(): Promise<string> {
    const hub = this.#hub
    const said = await inTime(this.#ofDatabase())
    return [
      DATABASE_UP.text(said === null ? 0 : 1),
      ...(said ?? []),
      OLDER_COPY.text(hub.lineage.isOlderCopy ? 1 : 0),
      CLOCK_AHEAD.text(hub.clock.ahead() / 1_000),
      CLOCKS_APART.text(hub.clocksApart.ms / 1_000),
      REFUSED_STARTS.text(hub.refusedStarts.map(refused => [refused, 1])),
      ...connectionFigures(hub),
      POLLED.text(hub.store.polling ? 1 : 0),
      ...backupGauges(hub),
    ].join('')
  }

  async #ofDatabase(): Promise<string[]> {
    const { webhookDeliveries, keptFiles, db, ...store } = this.#hub.store
    const degraded = await store.degraded()
    const [messages] = await db
      .select({ many: count() })
      .from(webhookDeliveries)
      .where(isNotNull(webhookDeliveries.next_at))
    const [files] = await db.select({ many: count() }).from(keptFiles).where(isNull(keptFiles.kept_for))
    return [
      DEGRADED.text(REASONS.map(reason => [{ reason }, Number(degraded === reason)])),
      ...(await this.#byRealm()),
      ...(await choreGauges(this.#hub)),
      MESSAGES.text(Number(messages!.many)),
      REMOVABLE.text(Number(files!.many)),
    ]
  }

  async #byRealm(): Promise<string[]> {
    const hub = this.#hub
    const { db, jobs, realms, runs, daemons } = hub.store
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
    const clockRows = await db
      .select({ realm: daemons.realm_id, apart: sql<number | null>`max(abs(${clockOf(hub.store)}))` })
      .from(daemons)
      .where(and(isNull(daemons.removed_at), isOnline(hub.store, now)))
      .groupBy(daemons.realm_id)
    const waiting = jobRows.filter(({ state }) => state === 'waiting')
    const ageOf = (oldest: unknown) => Math.max(0, now - Number(oldest)) / 1_000
    return [
      this.#jobs.text(jobRows.map(({ realm, state, many }): Sample => [{ realm, state }, Number(many)])),
      this.#oldestJob.text(waiting.map(({ realm, oldest }): Sample => [{ realm }, ageOf(oldest)])),
      this.#runs.text(
        runRows.map(
          ({ realm, state, many }): Sample => [
            { realm, cicd_pipeline_run_state: RUN_STATES[state] ?? state },
            Number(many),
          ],
        ),
      ),
      this.#daemons.text(
        daemonRows.map(({ realm, status, many }): Sample => [{ realm, cicd_worker_state: status }, Number(many)]),
      ),
      this.#clocks.text(
        clockRows.flatMap(({ realm, apart }): Sample[] => (apart === null ? [] : [[{ realm }, Number(apart) / 1_000]])),
      ),
    ]
  }
}

/** By how many milliseconds a daemon says that its clock is ahead. It may say any number. */
const clockOf = ({ dialect, daemons: { standing } }: Store) =>
  sql`CAST(${dialect === 'sqlite' ? standing : sql`${standing}::json`} ->> 'clock_ms' AS double precision)`

/** Prometheus waits ten seconds, and what this process knows must not be late because of the database. */
const PATIENCE_MS = 3_000

/** Null when the database does not answer, or not in time. */
async function inTime<T>(asked: Promise<T>): Promise<T | null> {
  const answer = asked.catch((error: unknown) => {
    if (asFailure(error, 'the hub').code === 'unavailable') return null
    throw error
  })
  const patience = startPause(PATIENCE_MS)
  try {
    return await Promise.race([answer, patience.over.then(() => null)])
  } finally {
    patience.end()
  }
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
    CHORE_RUN.text(samples(({ last_run_at }) => seconds(last_run_at))),
    CHORE_DURATION.text(samples(({ last_run_ms }) => seconds(last_run_ms))),
    CHORE_ERROR.text(samples(({ last_error_at }) => seconds(last_error_at))),
    CHORE_FAILING.text(
      samples(({ last_run_at, last_error }) => (last_run_at === null ? null : Number(last_error !== null))),
    ),
  ]
}

function backupGauges({ backups, now }: Hub): string[] {
  const newest = backups?.newest(now())
  return [BACKUP_TIME.text(newest && newest.at / 1_000), BACKUP_BYTES.text(newest?.bytes)]
}

/** Those of this process; without series on SQLite. */
function connectionFigures({ store }: Hub): string[] {
  const figures = store.connections()
  const { busy, idle } = figures ?? {}
  const states = Object.entries({ busy, idle })
  return [
    CONNECTIONS.text(states.flatMap(([state, many]): Sample[] => (many === undefined ? [] : [[{ state }, many]]))),
    WAITING_CALLS.text(figures?.waiting),
    counted(WAITED, figures?.waited),
    counted(WAIT_SECONDS, figures && figures.waitedMs / 1_000),
    counted(REFUSED, figures?.refused),
  ]
}

/** What another part of the program has counted. */
function counted(declared: Declared, value: number | null | undefined): string {
  const counter = new Counter(declared, [])
  if (typeof value === 'number') counter.add(value)
  return counter.text()
}
