// What happens when the hub finds out that its database is an older copy: a restored backup, a file that was put back, or a
// standby that lacked the last seconds. Jobs that waited in the copy may have been executed since, so they are held until
// the daemons that could have executed them have reported. New dispatches are not held.

import { and, eq, gt, gte, inArray, isNotNull, isNull, lte, max, or, sql } from 'drizzle-orm'
import type { OfferAtCopy } from '../../../db/hub/lineage-tables.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { inState } from '../core/job-rows.ts'
import { LIVE_MS } from '../core/living-hubs.ts'
import type { CopyKind, CopyRow } from './copies.ts'

/** After a failover, daemons that called within this time before the last write of the copy have to confirm. */
const RECENT_MS = 10 * 60_000
/** The same for any other copy. */
const DAY_MS = 86_400_000

export interface Discovery {
  kind: CopyKind
  realm_id: string | null
  count: number
  raised: number
  /** The hub process that has found it. */
  process: string
  now: number
  lived: number
}

/** Records that the database is an older copy, and holds what waited in it. */
export async function holdJobsOfCopy(
  store: Store,
  tx: Db,
  { process, now, lived, ...found }: Discovery,
): Promise<CopyRow> {
  const { copies, daemons, hubProcesses, jobs, confirmations } = store
  const beatTime = sql`coalesce(${hubProcesses.beat_time}, ${hubProcesses.beat_at})`
  const callTime = sql`coalesce(${daemons.called_at}, ${daemons.last_seen_at})`
  const [beat] = await tx.select({ lived: max(hubProcesses.beat_at), at: max(beatTime) }).from(hubProcesses)
  const [call] = await tx.select({ lived: max(daemons.last_seen_at), at: max(callTime) }).from(daemons)
  const written_at = Math.max(Number(beat?.at ?? 0), Number(call?.at ?? 0))
  // Who was there before the last write is decided in lived time: one call while the clock was ahead would hide all others.
  const written = Math.max(Number(beat?.lived ?? 0), Number(call?.lived ?? 0))
  const copy: CopyRow = {
    ...{ id: crypto.randomUUID(), ...found, found_at: now, found_lived: lived, written_at, ended_at: null },
    lost: found.kind === 'failover' ? null : true,
  }
  await tx.insert(copies).values(copy)
  const ofRealm = found.realm_id === null ? undefined : eq(jobs.realm_id, found.realm_id)
  const copied = { copy_id: copy.id }
  await tx
    .update(jobs)
    .set({ state: 'held', lease_until: null, ...copied })
    .where(and(inState(store, 'waiting', 'leased'), ofRealm))
  await tx
    .update(jobs)
    .set(copied)
    .where(and(inState(store, 'blocked'), ofRealm))
  const since = written - (found.kind === 'failover' ? RECENT_MS : DAY_MS)
  const recent = and(isNull(daemons.removed_at), isNotNull(daemons.approved_at), gte(daemons.last_seen_at, since))
  const calledRecently = await tx
    .select()
    .from(daemons)
    .where(and(recent, found.realm_id === null ? undefined : eq(daemons.realm_id, found.realm_id)))
  // What a hub wrote that had ended is in the copy.
  const live = and(isNull(hubProcesses.left_at), gt(hubProcesses.beat_at, written - LIVE_MS))
  const hubs = found.kind === 'failover' ? await tx.select().from(hubProcesses).where(live) : []
  const rows: (typeof confirmations.$inferInsert)[] = [
    ...calledRecently.map(
      ({ id, name, realm_id, last_seen_at, called_at, labels, agents, workspaces, environments }) => ({
        ...{ copy_id: copy.id, id, kind: 'daemon' as const, name, realm_id, last_seen_at: called_at ?? last_seen_at },
        offer: { labels, agents, workspaces, environments } satisfies OfferAtCopy,
      }),
    ),
    ...hubs.map(({ id, beat_at, beat_time }) => ({
      ...{ copy_id: copy.id, id, kind: 'hub' as const, name: id, last_seen_at: beat_time ?? beat_at },
      ...(id === process && { compared_at: null }),
    })),
  ]
  for (let at = 0; at < rows.length; at += 500) await tx.insert(confirmations).values(rows.slice(at, at + 500))
  await stopDeliveries(store, tx, copy)
  await stopTells(store, tx, copy)
  if (found.kind === 'restored') await endSessions(store, tx, now)
  return copy
}

/** Otherwise people who have signed out since the copy was made would be signed in again. */
async function endSessions({ tokens }: Store, tx: Db, now: number): Promise<void> {
  const open = and(eq(tokens.kind, 'session'), isNull(tokens.revoked_at))
  await tx.update(tokens).set({ revoked_at: now }).where(open)
}

/** Accounts may have been told since what was to be told in the copy, and are not told it again. */
async function stopTells({ tells }: Store, tx: Db, { realm_id, found_at }: CopyRow): Promise<void> {
  const here = realm_id === null ? undefined : eq(tells.realm_id, realm_id)
  await tx
    .update(tells)
    .set({
      state: 'unknown',
      error: 'the hub was found to be on an older copy: it may have been told',
      finished_at: found_at,
    })
    .where(and(isNull(tells.finished_at), inArray(tells.state, ['waiting', 'leased']), here))
}

/**
 * Stops the messages to webhooks that wait in the copy, because they may have been sent since. While it is not known
 * whether anything was lost, they only wait.
 */
export async function stopDeliveries({ webhookDeliveries: deliveries, webhooks }: Store, tx: Db, copy: CopyRow) {
  const { lost, realm_id, found_at } = copy
  const ofRealm = tx
    .select({ id: webhooks.id })
    .from(webhooks)
    .where(eq(webhooks.realm_id, realm_id ?? ''))
  const here = realm_id === null ? undefined : inArray(deliveries.webhook_id, ofRealm)
  const unknown = { state: 'unknown' as const, next_at: null, finished_at: found_at }
  await tx
    .update(deliveries)
    .set(lost === null ? { next_at: null } : unknown)
    .where(
      and(eq(deliveries.state, 'waiting'), or(lte(deliveries.created_at, found_at), isNull(deliveries.next_at)), here),
    )
}
