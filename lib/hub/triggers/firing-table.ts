// Table `firings`: the occasions of triggers, and what became of each. Every statement about it is here. A row is written
// in the transaction that queues its run.

import {
  and,
  asc,
  between,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  lte,
  ne,
  not,
  notExists,
  notLike,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { within } from '../../duration.ts'
import { Changed } from '../../firing/changes.ts'
import { familyOf, type Relative, rangeOf } from '../../firing/family.ts'
import { type Halt, UNJUDGED } from '../../firing/halt.ts'
import type { Firing, FiringFilter } from '../../firing/trigger.ts'
import type { FiringState } from '../../wire/records/trigger-words.ts'
import { ENDED_RUN_STATES, RUN_STATES } from '../../wire/states.ts'
import { CRASHED_MS } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'

type Row = Tables['firings']['$inferSelect']

const read = ({ seq: _, ...firing }: Row): Firing => firing

async function firingBy({ firings }: Pick<Store, 'firings'>, db: Db, where: SQL): Promise<Firing | null> {
  const [row] = await db.select().from(firings).where(where)
  return row ? read(row) : null
}

export const firingWithId = (store: Store, db: Db, id: string) => firingBy(store, db, eq(store.firings.id, id))

export const firingOf = (store: Store, db: Db, triggerId: string, occasion: string) =>
  firingBy(store, db, and(eq(store.firings.trigger_id, triggerId), eq(store.firings.occasion, occasion))!)

/** Those of one occasion, the first one and what people had fired of it again. */
export async function familyIn({ firings }: Store, tx: Db, triggerId: string, family: string): Promise<Relative[]> {
  const { id, occasion, state, run_id, trigger_id, seq } = firings
  const rows = await tx
    .select({ id, occasion, state, run_id })
    .from(firings)
    .where(and(eq(trigger_id, triggerId), between(occasion, ...rangeOf(family))))
    .orderBy(asc(seq))
  return rows.filter(row => familyOf(row) === family)
}

/** The condition that `filter` puts on the firings of a trigger. */
export function firingsThat({ firings }: Store, triggerId: string, filter: FiringFilter): SQL {
  const { state, reason, since, until } = filter
  return and(
    eq(firings.trigger_id, triggerId),
    state && eq(firings.state, state),
    reason && eq(firings.reason, reason),
    since === undefined ? undefined : gte(firings.at, since),
    until === undefined ? undefined : lt(firings.at, until),
  )!
}

/** Newest first. */
export async function listFirings(
  { firings }: Store,
  db: Db,
  where: SQL,
  { limit, offset }: { limit: number; offset: number },
): Promise<Firing[]> {
  const rows = await db.select().from(firings).where(where).orderBy(desc(firings.seq)).limit(limit).offset(offset)
  return rows.map(read)
}

/** The newest of them, without their variables, which may be large. */
export async function newestFirings(
  { firings }: Store,
  db: Db,
  where: SQL,
  limit: number,
): Promise<Omit<Firing, 'variables'>[]> {
  const { variables: _, seq: __, ...columns } = getTableColumns(firings)
  return db.select(columns).from(firings).where(where).orderBy(desc(firings.seq)).limit(limit)
}

/** The firings whose id begins so, of triggers in the realms that `reached` says, newest first, with the names of these. */
export async function firingsBeginning(
  { firings, triggers, realms, db }: Store,
  begins: string,
  reached: SQL | undefined,
  { limit, offset }: { limit: number; offset: number },
) {
  const rows = await db
    .select({ firing: firings, name: triggers.name })
    .from(firings)
    .innerJoin(triggers, eq(triggers.id, firings.trigger_id))
    .innerJoin(realms, eq(realms.id, triggers.realm_id))
    .where(and(gte(firings.id, begins), lt(firings.id, `${begins}~`), reached))
    .orderBy(desc(firings.id))
    .limit(limit)
    .offset(offset)
  return rows.map(({ firing, name }) => ({ firing: read(firing), name }))
}

const waits = ({ firings }: Pick<Store, 'firings'>, triggerId: string) =>
  and(eq(firings.trigger_id, triggerId), sql`${firings.state} = 'waiting'`)!

const unjudged = ({ firings: { reason } }: Pick<Store, 'firings'>) => or(isNull(reason), inArray(reason, UNJUDGED))!

/** Those that wait for their turn, the oldest first. */
export async function waitingOf(store: Store, tx: Db, triggerId: string, limit: number): Promise<Firing[]> {
  const { firings } = store
  const found = tx.select().from(firings).where(waits(store, triggerId))
  return (await found.orderBy(asc(firings.seq)).limit(limit)).map(read)
}

/** Those of them that nobody has judged yet. */
export async function unjudgedOf(store: Store, tx: Db, triggerId: string, limit: number): Promise<Firing[]> {
  const { firings } = store
  const those = and(waits(store, triggerId), unjudged(store))
  const found = tx.select().from(firings).where(those)
  return (await found.orderBy(asc(firings.seq)).limit(limit)).map(read)
}

/** Settles all that wait and were seen up to a moment. */
export async function settleWaiting(
  store: Store,
  tx: Db,
  triggerId: string,
  halt: Halt,
  seenUntil = Number.MAX_SAFE_INTEGER,
): Promise<void> {
  const { firings } = store
  await tx
    .update(firings)
    .set(halt)
    .where(and(waits(store, triggerId), lte(firings.seen_at, seenUntil)))
}

/** Those that wait for the run before although `most` newer ones do, but for what people fired. */
export async function waitingBeyond(store: Store, tx: Db, triggerId: string, most: number): Promise<Firing[]> {
  const { firings } = store
  const counted = and(waits(store, triggerId), eq(firings.reason, 'overlap'), isNull(firings.manual))
  const newest = tx.select({ seq: firings.seq }).from(firings).where(counted).orderBy(desc(firings.seq)).limit(1)
  const last = newest.offset(most)
  return (
    await tx
      .select()
      .from(firings)
      .where(and(counted, lte(firings.seq, last)))
  ).map(read)
}

/** How many wait that were judged. */
export async function countWaiting(store: Store, tx: Db, triggerId: string): Promise<number> {
  const [row] = await tx
    .select({ many: sql<number>`count(*)`.mapWith(Number) })
    .from(store.firings)
    .where(and(waits(store, triggerId), not(unjudged(store))))
  return row!.many
}

/** How many of a trigger started within the last `ms`. */
export async function startedWithin(
  { firings }: Store,
  tx: Db,
  triggerId: string,
  now: number,
  ms: number,
): Promise<number> {
  const { after, to } = within(now, ms)
  const { started_at, trigger_id } = firings
  const [row] = await tx
    .select({ many: sql<number>`count(*)`.mapWith(Number) })
    .from(firings)
    .where(and(eq(trigger_id, triggerId), gt(started_at, after), lte(started_at, to)))
  return row!.many
}

/**
 * The top runs of a trigger that have not ended, the oldest first. One whose daemon is silent is left out: nobody knows
 * whether it goes on.
 */
export async function openRuns({ store, lived }: Hub, tx: Db, { id, realm_id }: { id: string; realm_id: string }) {
  const { runs, firings, daemons } = store
  const open = RUN_STATES.filter(state => !ENDED_RUN_STATES.includes(state))
  const rows = await tx
    .select({ run: runs, last_seen_at: daemons.last_seen_at })
    .from(runs)
    .innerJoin(firings, eq(firings.run_id, runs.run_id))
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(and(eq(runs.realm_id, realm_id), inArray(runs.state, open), eq(firings.trigger_id, id)))
    .orderBy(asc(runs.run_id))
  const silent = lived() - CRASHED_MS
  return rows.filter(row => row.last_seen_at === null || row.last_seen_at >= silent).map(({ run }) => run)
}

/** Throws when the occasion is there already. */
export async function insertFiring({ firings }: Store, tx: Db, firing: Firing): Promise<void> {
  await tx.insert(firings).values(firing)
}

/**
 * Writes what became of a firing that waited, or stood for several slots. `was`: its state when it was read. Throws
 * `Changed`.
 */
export async function settleFiring({ firings }: Store, tx: Db, firing: Firing, was: FiringState): Promise<void> {
  const { id, trigger_id: _, manual: __, seen_at: ___, ...values } = firing
  const those = and(eq(firings.id, id), eq(firings.state, was))
  const settled = await tx.update(firings).set(values).where(those).returning({ id: firings.id })
  if (settled.length === 0) throw new Changed(`${firing.occasion} is ${was} no more`)
}

/** The latest firing of this occasion, or of `occasion~2` and so on, when it counts only for a time. */
export async function newestFiringOf({ firings }: Store, tx: Db, triggerId: string, occasion: string) {
  const { trigger_id, seq } = firings
  const those = or(
    eq(firings.occasion, occasion),
    and(gt(firings.occasion, `${occasion}~`), lt(firings.occasion, `${occasion}~:`)),
  )
  const found = tx
    .select()
    .from(firings)
    .where(and(eq(trigger_id, triggerId), isNull(firings.manual), those))
  const [row] = await found.orderBy(desc(seq)).limit(1)
  return row ? read(row) : null
}

/** A delivery came once more. */
export async function countDelivery({ firings }: Store, tx: Db, id: string): Promise<void> {
  await tx
    .update(firings)
    .set({ deliveries: sql`${firings.deliveries} + 1` })
    .where(eq(firings.id, id))
}

/** Of the requests that were refused before anybody knew which delivery they were, the newest `keep` stay. */
export async function keepRejected({ firings }: Store, tx: Db, triggerId: string, keep: number): Promise<void> {
  const { seq, trigger_id, occasion } = firings
  const those = and(eq(trigger_id, triggerId), gte(occasion, 'rejected:'), lt(occasion, 'rejected;'))
  const newest = await tx
    .select({ seq })
    .from(firings)
    .where(those)
    .orderBy(desc(seq))
    .limit(keep + 20)
  const old = newest.slice(keep).map(row => row.seq)
  if (old.length > 0) await tx.delete(firings).where(inArray(seq, old))
}

/** The slots from one occasion to another that have a firing of their own. */
export async function knownSlots({ firings }: Store, tx: Db, triggerId: string, from: string, to: string) {
  const { at, occasion, trigger_id } = firings
  const those = and(eq(trigger_id, triggerId), between(occasion, from, to), notLike(occasion, '%#%'))
  const rows = await tx.select({ at }).from(firings).where(those).orderBy(asc(occasion))
  return rows.map(row => row.at)
}

/** Those of the times in [`from`, `to`), the oldest row first. */
export async function firingsBetween(
  { firings }: Store,
  tx: Db,
  triggerId: string,
  { from, to }: { from: number; to: number },
): Promise<Firing[]> {
  const { seq, trigger_id, at, until } = firings
  const those = and(eq(trigger_id, triggerId), lt(at, to), gte(sql`coalesce(${until}, ${at})`, from))
  return (await tx.select().from(firings).where(those).orderBy(asc(seq))).map(read)
}

const startedNothing = ({ firings }: Store, triggerId: string) =>
  and(eq(firings.trigger_id, triggerId), ne(firings.state, 'started'), isNull(firings.manual))

/** Deletes slots after `now` that started nothing. What started later than now counts as started now. */
export async function deleteAfter(store: Store, tx: Db, triggerId: string, now: number): Promise<void> {
  const { firings } = store
  await tx.delete(firings).where(and(startedNothing(store, triggerId), gt(firings.at, now)))
  const later = and(eq(firings.trigger_id, triggerId), gt(firings.started_at, now))
  await tx.update(firings).set({ started_at: now }).where(later)
}

/** The rows that started nothing and whose last slot is after a moment. */
export async function endingAfter(store: Store, tx: Db, triggerId: string, moment: number): Promise<Firing[]> {
  const { firings } = store
  const last = sql`coalesce(${firings.until}, ${firings.at})`
  const rows = await tx
    .select()
    .from(firings)
    .where(and(startedNothing(store, triggerId), gt(last, moment)))
  return rows.map(read)
}

/** The row of slots that an older copy made the hub pass over, if it stands for this slot. */
export async function passedOverRow({ firings }: Store, tx: Db, triggerId: string, slot: number) {
  const { trigger_id, reason, at, until } = firings
  const around = and(lte(at, slot), gte(sql`coalesce(${until}, ${at})`, slot))
  return firingBy({ firings }, tx, and(eq(trigger_id, triggerId), eq(reason, 'copy'), around)!)
}

export async function deleteFiring({ firings }: Store, tx: Db, id: string): Promise<void> {
  await tx.delete(firings).where(eq(firings.id, id))
}

/** The number of the oldest firing of a trigger that is among its newest `count`; 0 when it has no more. */
export async function newestKept({ firings, db }: Store, triggerId: string, count: number): Promise<number> {
  const { seq } = firings
  const of = eq(firings.trigger_id, triggerId)
  const rows = await db
    .select({ seq })
    .from(firings)
    .where(of)
    .orderBy(desc(seq))
    .limit(1)
    .offset(count - 1)
  return rows[0]?.seq ?? 0
}

/**
 * Deletes at most `most` final firings of a trigger that were seen before a moment, whose run is not there, and that come before the
 * number `first`. Returns how many, and which ends of runs they had.
 */
export async function deleteOldOf(
  { firings, runs }: Store,
  tx: Db,
  triggerId: string,
  { seenBefore, first, most }: { seenBefore: number; first: number; most: number },
): Promise<{ deleted: number; ends: number[] }> {
  const { seq, trigger_id, seen_at, state, run_id, end_id } = firings
  const run = tx.select({ one: sql`1` }).from(runs).where(eq(runs.run_id, run_id))
  const those = and(eq(trigger_id, triggerId), lt(seq, first), lt(seen_at, seenBefore), ne(state, 'waiting'))
  const old = tx
    .select({ seq })
    .from(firings)
    .where(and(those, notExists(run)))
    .limit(most)
  const deleted = await tx.delete(firings).where(inArray(seq, old)).returning({ end_id })
  return { deleted: deleted.length, ends: [...new Set(deleted.flatMap(row => row.end_id ?? []))] }
}
