// A hub on an older copy of its database: a restored backup, a file that was put back, a standby that lacked the last
// seconds. What waited in the copy may have been executed since, so it is held until the daemons that could have taken it
// have sent what they have, or a person goes on without them. What daemons report is true. New dispatches go on.

import { and, eq, gt, gte, inArray, isNotNull, isNull, lte, max, or } from 'drizzle-orm'
import type { OfferThen } from '../../../db/hub/memory-tables.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { lacks } from './needs.ts'
import { inState, type JobRow } from './queue.ts'

type CopyRow = Store['copies']['$inferSelect']
export type CopyKind = CopyRow['kind']
export type Witness = Store['witnesses']['$inferSelect']

export interface Copy extends CopyRow {
  /** By id. Those of a copy that has ended are not read. */
  witnesses: ReadonlyMap<string, Witness>
}

/** Counts go on so far above those of a copy that what was lost cannot have been higher. */
export const GAP = 1_000_000_000
const MINUTE_MS = 60_000
/** Daemons that called so long before the last write of a copy have to report: where seconds were lost, or all else. */
const RECENT_MS = 10 * MINUTE_MS
const DAY_MS = 86_400_000
/** A hub that had not noted for so long that it is there had ended, and what it wrote is in the copy. */
const LIVE_HUB_MS = MINUTE_MS

export const concerns = ({ realm_id }: Pick<CopyRow, 'realm_id'>, realm: string | null): boolean =>
  realm_id === null || realm_id === realm

/** Whether the place is that of a database on a server. */
export const isServer = (place: string): boolean => place.split('/').length > 2

/** The time of birth tells a file from every other; its number does where that is unknown, but may change at a mount. */
function isSameFile(one: string, other: string): boolean {
  const [[inode, born], [otherInode, otherBorn]] = [one.split('/'), other.split('/')]
  return born && otherBorn ? born === otherBorn : inode === otherInode
}

/** Whether a database is where its row says, and has what the file beside it says. */
export function isTrusted(
  row: { place: string; mark: string; lineage: string },
  place: string,
  beside: { lineage: string; mark: string; before: string | null; count: number } | null,
  count: number,
): boolean {
  // PostgreSQL, or an engine that tells no place.
  if (place === '' || isServer(place)) return row.place === place
  if (!isSameFile(row.place, place)) return false
  if (beside === null || beside.lineage !== row.lineage) return false
  return [beside.mark, beside.before].includes(row.mark) && beside.count <= count
}

export interface Found {
  kind: CopyKind
  realm_id: string | null
  count: number
  raised: number
  /** The hub that has found it. */
  process: string
  now: number
}

/** Records that the database is an older copy, and holds what waited in it. */
export async function discover(store: Store, tx: Db, { process, now, ...found }: Found): Promise<CopyRow> {
  const { copies, daemons, hubProcesses, jobs, witnesses } = store
  const [beat] = await tx.select({ at: max(hubProcesses.beat_at) }).from(hubProcesses)
  const [call] = await tx.select({ at: max(daemons.last_seen_at) }).from(daemons)
  const written_at = Math.max(Number(beat?.at ?? 0), Number(call?.at ?? 0))
  const copy: CopyRow = {
    ...{ id: crypto.randomUUID(), ...found, found_at: now, written_at, ended_at: null },
    lost: found.kind === 'failover' ? null : true,
  }
  await tx.insert(copies).values(copy)
  const here = found.realm_id === null ? undefined : eq(jobs.realm_id, found.realm_id)
  const copied = { copy_id: copy.id }
  await tx
    .update(jobs)
    .set({ state: 'held', lease_until: null, ...copied })
    .where(and(inState(store, 'waiting', 'leased'), here))
  await tx
    .update(jobs)
    .set(copied)
    .where(and(inState(store, 'blocked'), here))
  const since = written_at - (found.kind === 'failover' ? RECENT_MS : DAY_MS)
  const recent = and(isNull(daemons.removed_at), isNotNull(daemons.approved_at), gte(daemons.last_seen_at, since))
  const those = await tx
    .select()
    .from(daemons)
    .where(and(recent, found.realm_id === null ? undefined : eq(daemons.realm_id, found.realm_id)))
  const live = and(isNull(hubProcesses.left_at), gt(hubProcesses.beat_at, written_at - LIVE_HUB_MS))
  const hubs = found.kind === 'failover' ? await tx.select().from(hubProcesses).where(live) : []
  const rows: (typeof witnesses.$inferInsert)[] = [
    ...those.map(({ id, name, realm_id, last_seen_at, labels, agents, workspaces }) => ({
      ...{ copy_id: copy.id, id, kind: 'daemon' as const, name, realm_id, last_seen_at },
      offer: { labels, agents, workspaces } satisfies OfferThen,
    })),
    ...hubs.map(({ id, beat_at }) => ({
      ...{ copy_id: copy.id, id, kind: 'hub' as const, name: id, last_seen_at: beat_at },
      ...(id === process && { compared_at: null }),
    })),
  ]
  for (let at = 0; at < rows.length; at += 500) await tx.insert(witnesses).values(rows.slice(at, at + 500))
  await stopDeliveries(store, tx, copy)
  if (found.kind === 'restored') await endSessions(store, tx, now)
  return copy
}

/** Where the database or its file is another one, who signed out since would be signed in again. */
async function endSessions({ tokens }: Store, tx: Db, now: number): Promise<void> {
  const open = and(eq(tokens.kind, 'session'), isNull(tokens.revoked_at))
  await tx.update(tokens).set({ revoked_at: now }).where(open)
}

/** What was to be sent may have been. While it is not known whether anything was lost, it only waits. */
async function stopDeliveries({ webhookDeliveries: deliveries, webhooks }: Store, tx: Db, copy: CopyRow) {
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

export async function readCopies({ copies, witnesses }: Store, db: Db): Promise<Copy[]> {
  const rows = await db.select().from(copies)
  const open = rows.filter(({ ended_at }) => ended_at === null).map(({ id }) => id)
  const all = open.length === 0 ? [] : await db.select().from(witnesses).where(inArray(witnesses.copy_id, open))
  return rows.map(row => ({
    ...row,
    witnesses: new Map(all.filter(({ copy_id }) => copy_id === row.id).map(each => [each.id, each])),
  }))
}

/** The daemons whose word is missing before a job may go. */
export function awaited(copy: Copy, job: Pick<JobRow, 'realm_id' | 'daemon_id' | 'needs'>): Witness[] {
  return [...copy.witnesses.values()].filter(
    ({ kind, id, realm_id, offer, reported_at, passed_at }) =>
      kind === 'daemon' &&
      offer !== null &&
      reported_at === null &&
      passed_at === null &&
      realm_id === job.realm_id &&
      (job.daemon_id === null || job.daemon_id === id) &&
      lacks(job.needs, offer).length === 0,
  )
}

/** Whether it is shown that a failover lost nothing: by all hubs that had written, or by all daemons that had called. */
function isWhole({ witnesses }: Copy): boolean {
  const all = [...witnesses.values()]
  const silent = (kind: Witness['kind']) =>
    all.some(each => each.kind === kind && each.compared_at === null && each.passed_at === null)
  return !silent('hub') || !silent('daemon')
}

/** The realms of which jobs were released, and the copies that are trusted now. */
export interface Settled {
  released: string[]
  ended: Copy[]
}

/** Lets go what is no longer in doubt. */
export async function settle(store: Store, now: number): Promise<Settled> {
  const { copies, db, jobs } = store
  const [held] = await db.select({ id: jobs.id }).from(jobs).where(inState(store, 'held')).limit(1)
  const [open] = await db.select({ id: copies.id }).from(copies).where(isNull(copies.ended_at)).limit(1)
  if (!held && !open) return { released: [], ended: [] }
  return store.write(async tx => {
    const known = new Map((await readCopies(store, tx)).map(copy => [copy.id, copy]))
    const ended: Copy[] = []
    for (const copy of known.values()) {
      if (copy.ended_at !== null) continue
      if (copy.lost === null && isWhole(copy)) {
        copy.lost = false
        await resumeDeliveries(store, tx, now)
      } else if (copy.lost && copy.kind === 'failover') await stopDeliveries(store, tx, copy)
      if (copy.lost === false || (copy.lost && isComplete(copy))) {
        copy.ended_at = now
        await tx.update(copies).set({ ended_at: now, lost: copy.lost }).where(eq(copies.id, copy.id))
        ended.push(copy)
      }
    }
    const { copy_id, realm_id, daemon_id, needs_key, needs } = jobs
    const groups = await tx
      .selectDistinct({ copy_id, realm_id, daemon_id, needs_key, needs })
      .from(jobs)
      .where(inState(store, 'held'))
    const released = new Set<string>()
    for (const group of groups) {
      const copy = group.copy_id === null ? undefined : known.get(group.copy_id)
      if (copy && copy.ended_at === null && awaited(copy, group).length > 0) continue
      const those = and(
        inState(store, 'held'),
        eq(realm_id, group.realm_id),
        group.copy_id === null ? isNull(copy_id) : eq(copy_id, group.copy_id),
        group.daemon_id === null ? isNull(daemon_id) : eq(daemon_id, group.daemon_id),
        eq(needs_key, group.needs_key),
      )
      await tx.update(jobs).set({ state: 'waiting', leased_to: null, lease_id: null, lease_until: null }).where(those)
      released.add(group.realm_id)
    }
    return { released: [...released], ended }
  })
}

const isComplete = ({ witnesses }: Copy): boolean =>
  [...witnesses.values()].every(
    ({ kind, reported_at, passed_at }) => kind === 'hub' || reported_at !== null || passed_at !== null,
  )

async function resumeDeliveries({ webhookDeliveries: deliveries }: Store, tx: Db, now: number): Promise<void> {
  const paused = and(eq(deliveries.state, 'waiting'), isNull(deliveries.next_at))
  await tx.update(deliveries).set({ next_at: now }).where(paused)
}

/** Jobs that waited in a copy, of which nobody is known to have begun the run. */
export const adoptable = (store: Store) =>
  and(isNotNull(store.jobs.copy_id), inArray(store.jobs.state, ['held', 'waiting', 'blocked', 'dead', 'cancelled']))
