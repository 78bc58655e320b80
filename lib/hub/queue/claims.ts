// Which jobs a daemon gets, and which daemons have jobs that wait for them. The statements are in `claimable-jobs.ts`.

import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { type DaemonRow, isOnline } from '../access/daemons.ts'
import type { JobRow } from '../core/job-rows.ts'
import {
  type ClaimedJob,
  daemonsWithJobs,
  type JobGroup,
  jobsOfGroup,
  lapsedJobs,
  lapsedJobsFor,
  ORDER_KINDS,
  RUN_KINDS,
  waitingGroupsFor,
  waitingRunsForAny,
} from './claimable-jobs.ts'
import { missingNeeds, type Offer, unreadyAgents } from './job-needs.ts'
import { LEASE_MS } from './jobs.ts'

/** The daemon that asks for jobs. */
export type ClaimingDaemon = Pick<DaemonRow, 'id' | 'realm_id' | 'paused'> & Offer

/** Jobs about existing runs take no slot. At most this many are delivered at once. */
const MOST_ORDERS = 50

type NeedsOfJob = Pick<JobRow, 'needs' | 'needs_key'>

/**
 * Whether the daemon may take a job with these needs. Where an agent that phases name is not ready on it, the job is
 * left to a daemon that is online and has it ready, if there is one.
 */
async function mayTakeJob(
  store: Store,
  db: Db,
  taker: ClaimingDaemon,
  { needs }: NeedsOfJob,
  now: number,
): Promise<boolean> {
  if (missingNeeds(needs, taker).length > 0) return false
  if (unreadyAgents(needs, taker).length === 0) return true
  const { daemons } = store
  const online = and(
    eq(daemons.realm_id, taker.realm_id),
    isNull(daemons.removed_at),
    isNotNull(daemons.approved_at),
    eq(daemons.paused, false),
    isOnline(store, now),
  )
  const others = await db.select().from(daemons).where(online)
  return !others.some(other => missingNeeds(needs, other).length === 0 && unreadyAgents(needs, other).length === 0)
}

async function jobsItMayTake<T extends NeedsOfJob>(
  store: Store,
  db: Db,
  taker: ClaimingDaemon,
  all: T[],
  now: number,
): Promise<T[]> {
  const may = await Promise.all(all.map(each => mayTakeJob(store, db, taker, each, now)))
  return all.filter((_, at) => may[at])
}

/** Whether the daemon gets runs and resumptions now. A paused one finishes what it has. */
const takesRuns = (taker: ClaimingDaemon, slots: number): boolean => slots > 0 && !taker.paused

/** What a daemon may have: the ids of jobs whose lease has lapsed, and what waits, each kind of need once. */
export interface Claimable {
  lapsed: ReadonlySet<string>
  waiting: JobGroup[]
}

/** The kinds of jobs that the daemon gets now. */
const kindsFor = (taker: ClaimingDaemon, slots: number): JobRow['kind'][] =>
  takesRuns(taker, slots) ? [...ORDER_KINDS, ...RUN_KINDS] : ORDER_KINDS

/** What the daemon may have now, or null if that is nothing: a cheap look before the transaction. */
export async function claimableJobs(
  store: Store,
  db: Db,
  taker: ClaimingDaemon,
  slots: number,
  now: number,
): Promise<Claimable | null> {
  const { id: daemon, realm_id: realm } = taker
  const [lapsed, waiting] = await Promise.all([
    lapsedJobsFor(store, db, { realm, daemon, now, kinds: JSON.stringify(kindsFor(taker, slots)) }),
    waitingGroupsFor(store, db, realm, daemon, takesRuns(taker, slots)),
  ])
  const [late, open] = await Promise.all(
    [lapsed, waiting].map(each => jobsItMayTake<NeedsOfJob>(store, db, taker, each, now)),
  )
  if (late!.length + open!.length === 0) return null
  return { lapsed: new Set((late as JobRow[]).map(({ id }) => id)), waiting: open as JobGroup[] }
}

/** What waits in a realm: for which daemons, and the different needs of the runs that any daemon may take. */
export interface WaitingJobs {
  pinned: { daemonId: string; takesSlot: boolean }[]
  needs: NeedsOfJob[]
}

/** What could be claimed now. The cost is that of the different daemons and needs, however many jobs wait. */
export async function waitingJobs(store: Store, realm: string, now: number): Promise<WaitingJobs> {
  const [late, forAny, meant] = await Promise.all([
    lapsedJobs(store, store.db, { realm, now }),
    waitingRunsForAny(store, realm),
    daemonsWithJobs(store, store.db, { realm }),
  ])
  const pinned = late.flatMap(({ daemon_id, kind }) => (daemon_id === null ? [] : [{ kind, id: daemon_id }]))
  return {
    needs: [...late.filter(job => job.daemon_id === null), ...forAny],
    pinned: [...pinned, ...meant].map(({ kind, id }) => ({ daemonId: id, takesSlot: RUN_KINDS.includes(kind) })),
  }
}

/**
 * Leases the jobs among `found` that are still open: at most `slots` runs and resumptions, and in addition orders. `taker` is
 * the daemon as this transaction finds it, which is asked for at the same time as the jobs; null: it gets nothing.
 */
export async function claimJobs(
  store: Store,
  tx: Db,
  { id: daemon, realm_id: realm }: Pick<ClaimingDaemon, 'id' | 'realm_id'>,
  slots: number,
  { lapsed, waiting }: Claimable,
  now: number,
  asked: ClaimingDaemon | null | Promise<ClaimingDaemon | null>,
): Promise<ClaimedJob[]> {
  const most = (kind: JobRow['kind']) => (ORDER_KINDS.includes(kind) ? MOST_ORDERS : slots)
  const kinds = JSON.stringify([...ORDER_KINDS, ...RUN_KINDS])
  const [taker, late, ...jobs] = await together([
    asked,
    lapsed.size === 0 ? [] : lapsedJobsFor(store, tx, { realm, daemon, now, kinds }),
    ...waiting.map(({ meant, kind, needs_key: key }) =>
      jobsOfGroup(meant)(store, tx, { realm, daemon, kind, key, limit: most(kind) }),
    ),
  ])
  if (!taker) return []
  const taken = kindsFor(taker, slots)
  const found = [...late.filter(({ id }) => lapsed.has(id)), ...jobs.flat()]
    .filter(({ kind, needs }) => taken.includes(kind) && missingNeeds(needs, taker).length === 0)
    .sort(inDeliveryOrder)
  const some = (kinds: JobRow['kind'][], limit: number) =>
    found.filter(({ kind }) => kinds.includes(kind)).slice(0, limit)
  const picked = [...some(ORDER_KINDS, MOST_ORDERS), ...some(RUN_KINDS, slots)]
  if (picked.length === 0) return []
  // The lease of one delivery. A later delivery of the same job has another.
  const lease = { leased_to: taker.id, lease_id: crypto.randomUUID(), lease_until: now + LEASE_MS }
  await leaseJobs(store, tx, { ids: JSON.stringify(picked.map(({ id }) => id)), ...lease })
  return picked.map(job => ({ ...job, ...lease, state: 'leased', deliveries: job.deliveries + 1 }))
}

const leaseJobs = prepared((store, db, slot: Slot<'ids' | 'leased_to' | 'lease_id' | 'lease_until'>) => {
  const { jobs } = store
  return db
    .update(jobs)
    .set({
      state: 'leased',
      leased_to: sql`${slot('leased_to')}`,
      lease_id: sql`${slot('lease_id')}`,
      lease_until: sql`${slot('lease_until')}`,
      deliveries: sql`${jobs.deliveries} + 1`,
    })
    .where(isAmong(store, jobs.id, slot('ids')))
})

const inDeliveryOrder = (a: JobRow, b: JobRow) =>
  b.priority - a.priority || a.created_at - b.created_at || (a.id < b.id ? -1 : 1)
