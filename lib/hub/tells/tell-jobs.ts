// The jobs of kind `tell` in the queue: a daemon that has the account leases one, says `accepted` before it tells, so that no
// other daemon tells the same, and then what came of it.

import { and, asc, eq, gte, inArray, isNotNull, isNull, lt, lte, or, sql } from 'drizzle-orm'
import { deleteAtMost } from '../../../db/hub/delete-at-most.ts'
import { isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Answer } from '../../wire/calls/daemon-link.ts'
import { TELL } from '../../wire/records/jobs.ts'
import { record } from '../access/audit.ts'
import { orgOf, type RealmCaller } from '../access/callers.ts'
import type { DaemonRow } from '../access/daemons.ts'
import { isUuid } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { hasAccount } from './accounts.ts'

type TellRow = Tables['tells']['$inferSelect']

const LEASE_MS = 60_000
const MOST_AT_ONCE = 20
const MOST_DELIVERIES = 5
/** What no daemon takes within this time is news no more. */
const WAITS_MS = 3_600_000
/** A daemon that said `accepted` and nothing else within this time is not expected to say more. */
const ANSWERS_MS = 86_400_000

/** Those that wait, or whose lease is over, the oldest first. */
const openTells = prepared(({ tells }, db, slot: Slot<'realm' | 'now'>) =>
  db
    .select()
    .from(tells)
    .where(
      and(
        eq(tells.realm_id, slot('realm')),
        isNull(tells.finished_at),
        or(eq(tells.state, 'waiting'), and(eq(tells.state, 'leased'), lte(tells.lease_until, slot('now')))),
        lt(tells.deliveries, MOST_DELIVERIES),
      ),
    )
    .orderBy(asc(tells.created_at), asc(tells.id)),
)

/** The accounts at which something is to be told now. */
export async function accountsWaiting(store: Store, realm: string, now: number): Promise<string[]> {
  return [...new Set((await openTells(store, store.db, { realm, now })).map(({ account }) => account))]
}

/** What the daemon may tell now. */
export async function tellsFor(store: Store, db: Db, daemon: DaemonRow, now: number): Promise<TellRow[]> {
  if (!daemon.kinds?.includes(TELL)) return []
  const open = await openTells(store, db, { realm: daemon.realm_id, now })
  return open.filter(({ account }) => hasAccount(daemon, account)).slice(0, MOST_AT_ONCE)
}

/** Leases what the daemon may tell, in the form of jobs. */
export async function claimTells(store: Store, tx: Db, daemon: DaemonRow, now: number) {
  const found = await tellsFor(store, tx, daemon, now)
  if (found.length === 0) return []
  const { tells } = store
  const lease = { leased_to: daemon.id, lease_id: crypto.randomUUID(), lease_until: now + LEASE_MS }
  await tx
    .update(tells)
    .set({ ...lease, state: 'leased', deliveries: sql`${tells.deliveries} + 1` })
    .where(
      inArray(
        tells.id,
        found.map(({ id }) => id),
      ),
    )
  return found.map(({ id, account, text, deliveries }) => {
    return { ...lease, id, kind: TELL, run_id: null, deliveries: deliveries + 1, payload: { account, text } }
  })
}

interface TellAnswer {
  jobId: string
  leaseId: string
  status: Answer
  error?: string | undefined
}

const tellsById = prepared((store, db, slot: Slot<'ids'>) =>
  db
    .select()
    .from(store.tells)
    .where(isAmong(store, store.tells.id, slot('ids'))),
)

/** Records answers about jobs of kind `tell`, each by the id of its job, or why it is refused. Other jobs have no entry. */
export async function answerTells(
  hub: Hub,
  tx: Db,
  caller: RealmCaller,
  daemon: DaemonRow,
  given: readonly TellAnswer[],
): Promise<Map<string, Pick<TellRow, 'id'> | CadreError>> {
  const { store, clock } = hub
  const { tells } = store
  const { id: daemonId, realm_id } = daemon
  const rows = await tellsById(store, tx, { ids: JSON.stringify(given.map(({ jobId }) => jobId).filter(isUuid)) })
  const known = new Map(rows.filter(row => row.realm_id === realm_id).map(row => [row.id, row]))
  const verdicts = new Map<string, Pick<TellRow, 'id'> | CadreError>()
  for (const { jobId, leaseId, status, error } of given) {
    const row = known.get(jobId)
    if (!row) continue
    const refusal = whyRefused(row, daemonId, leaseId, status)
    if (refusal) {
      verdicts.set(jobId, refusal)
      continue
    }
    const end = { finished_at: row.finished_at ?? clock.keptSince(), error: error?.toWellFormed() ?? row.error }
    const now: Partial<TellRow> = { state: status, ...(status !== 'accepted' && end) }
    await tx.update(tells).set(now).where(eq(tells.id, jobId))
    known.set(jobId, { ...row, ...now })
    verdicts.set(jobId, row)
    const target = `${status} tell job ${jobId}, ${row.account}${now.error ? `: ${now.error}` : ''}`
    await record(hub, tx, caller, { action: 'daemons/ack', target, realm_id, org_id: orgOf(caller, realm_id) })
  }
  return verdicts
}

function whyRefused(row: TellRow, daemonId: string, leaseId: string, status: Answer): CadreError | null {
  const { id, state } = row
  if (row.lease_id !== leaseId || row.leased_to !== daemonId) {
    return new CadreError('conflict', `lease ${leaseId} of job ${id} is over`)
  }
  if (['leased', 'accepted', status].includes(state)) return null
  return new CadreError('conflict', `job ${id} is already ${state}`)
}

/** Ends what nobody takes, and what a daemon has taken and says nothing of. */
export async function endLostTells({ store, lived, clock }: Hub): Promise<void> {
  const { tells } = store
  const now = lived()
  const untaken = and(
    inArray(tells.state, ['waiting', 'leased']),
    or(isNull(tells.lease_until), lte(tells.lease_until, now)),
    or(lt(tells.created_at, now - WAITS_MS), gte(tells.deliveries, MOST_DELIVERIES)),
  )
  const silent = and(eq(tells.state, 'accepted'), lt(tells.created_at, now - ANSWERS_MS))
  const open = isNull(tells.finished_at)
  const [any] = await store.db
    .select({ id: tells.id })
    .from(tells)
    .where(and(open, or(untaken, silent)))
    .limit(1)
  if (!any) return
  const finished_at = clock.keptSince()
  await store.write(async tx => {
    await tx.update(tells).set({ state: 'failed', error: 'no daemon took it', finished_at }).where(and(open, untaken))
    await tx
      .update(tells)
      .set({ state: 'unknown', error: 'its daemon did not say', finished_at })
      .where(and(open, silent))
  })
}

/** Deletes at most `most` that ended before then, by the time that is believed. Returns how many. */
export async function deleteOldTells({ store }: Hub, before: number, most: number): Promise<number> {
  const { tells } = store
  const where = and(isNotNull(tells.finished_at), lt(tells.finished_at, before))
  return store.write(tx => deleteAtMost(store, tx, tells, { where, most }))
}
