// Quotas of realms: how many runs may wait and be dispatched, how many bytes of files and logs are stored, how many
// streams are open. What is used is counted in one row a realm, in the transaction of the change, so that it is exact
// however many hubs there are and costs the same however much there is. What has no quota is not counted.

import { and, count, eq, gt, isNotNull, lte, type SQL, sql, sum } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { CadreError } from '../../error.ts'
import { sizeText } from '../../size.ts'
import { STORED_BYTES } from '../../wire/reasons.ts'
import { QUOTAS, type Quota, type Quotas, type QuotaValues } from '../../wire/records/quotas.ts'
import type { Hub } from '../core/hub.ts'
import { inState } from '../core/job-rows.ts'

const MINUTE_MS = 60_000
/** How long a stream counts as open after its hub has last confirmed it, and how often the hub does. */
const STREAM_MS = 60_000
const RENEW_MS = 20_000

interface Realm {
  id: string
  slug: string
  quotas: Quotas | null
}

/** What holds in a realm. */
export function quotasOf({ quotas: site }: Hub, { quotas: own }: Pick<Realm, 'quotas'>): QuotaValues {
  return valuesBy(name => (own?.[name] === undefined ? site[name] : own[name]))
}

/** What is used of the quotas of a realm; null where it has none. */
export async function quotaUseOf(hub: Hub, db: Db, realm: Realm): Promise<QuotaValues> {
  const { realmUse, openStreams } = hub.store
  const quotas = quotasOf(hub, realm)
  const [row] = await db.select().from(realmUse).where(eq(realmUse.realm_id, realm.id))
  const now = hub.lived()
  const open = and(eq(openStreams.realm_id, realm.id), gt(openStreams.until, now))
  const used: QuotaValues = {
    waiting: row?.waiting ?? 0,
    dispatches_per_minute: row && row.minute_at > now - MINUTE_MS ? row.dispatched : 0,
    stored_bytes: row?.stored_bytes ?? 0,
    log_bytes: row?.log_bytes ?? 0,
    streams: quotas.streams === null ? null : await total(db, openStreams, open),
  }
  return valuesBy(name => (quotas[name] === null ? null : used[name]))
}

/** Counts anew what is used of the quotas of a realm, when they change. */
export async function countQuotaUse(hub: Hub, tx: Db, realm: Realm): Promise<void> {
  const { realmUse, jobs, keptFiles, runs } = hub.store
  const { waiting, stored_bytes, log_bytes, dispatches_per_minute } = quotasOf(hub, realm)
  const waits = and(
    eq(jobs.realm_id, realm.id),
    eq(jobs.kind, 'run'),
    inState(hub.store, 'waiting', 'blocked', 'leased', 'held'),
  )
  const bytesOf = async (table: SQLiteTable, column: SQL, where: SQL) => {
    const [row] = await tx
      .select({ bytes: sql<number>`coalesce(${column}, 0)`.mapWith(Number) })
      .from(table)
      .where(where)
    return row!.bytes
  }
  const counted = {
    waiting: waiting === null ? null : await total(tx, jobs, waits),
    stored_bytes:
      stored_bytes === null ? null : await bytesOf(keptFiles, sum(keptFiles.bytes), eq(keptFiles.realm_id, realm.id)),
    log_bytes: log_bytes === null ? null : await bytesOf(runs, sum(runs.log_bytes), eq(runs.realm_id, realm.id)),
  }
  const isLimited = dispatches_per_minute !== null || Object.values(counted).some(value => value !== null)
  if (!isLimited) return void (await tx.delete(realmUse).where(eq(realmUse.realm_id, realm.id)))
  await tx
    .insert(realmUse)
    .values({ realm_id: realm.id, ...counted })
    .onConflictDoUpdate({ target: realmUse.realm_id, set: counted })
}

/** Counts anew in every realm, once an hour: what a hub without these quotas has changed meanwhile was not counted. */
export async function* countQuotaUseOfAllRealms(hub: Hub): AsyncGenerator<void> {
  const { realms, db } = hub.store
  for (const { id } of await db.select({ id: realms.id }).from(realms)) {
    await hub.store.write(async tx => {
      const [realm] = await tx.select().from(realms).where(eq(realms.id, id))
      if (realm) await countQuotaUse(hub, tx, realm)
    })
    yield
  }
}

/** Counts runs that are dispatched. Throws `rate_limited` when they are more than the realm may have. */
export async function countDispatches(hub: Hub, tx: Db, realm: Realm, runs: number): Promise<void> {
  const quotas = quotasOf(hub, realm)
  if (quotas.waiting === null && quotas.dispatches_per_minute === null) return
  const now = hub.lived()
  let [use] = await dispatched(hub.store, tx, { realmId: realm.id, runs, now, since: now - MINUTE_MS })
  if (!use || (quotas.waiting !== null && use.waiting === null)) {
    await countQuotaUse(hub, tx, realm)
    ;[use] = await dispatched(hub.store, tx, { realmId: realm.id, runs, now, since: now - MINUTE_MS })
  }
  if (quotas.waiting !== null && use!.waiting! > quotas.waiting) {
    throw quotaExceeded('waiting', realm, `${quotas.waiting} runs may wait`, 10)
  }
  if (quotas.dispatches_per_minute !== null && use!.dispatched > quotas.dispatches_per_minute) {
    const wait = Math.max(1, Math.ceil((use!.minute_at + MINUTE_MS - now) / 1_000))
    throw quotaExceeded(
      'dispatches_per_minute',
      realm,
      `${quotas.dispatches_per_minute} runs may be dispatched a minute`,
      wait,
    )
  }
}

const dispatched = prepared((store, db, slot: Slot<'realmId' | 'runs' | 'now' | 'since'>) => {
  const { realmUse } = store
  const goesOn = sql`${realmUse.minute_at} > CAST(${slot('since')} AS bigint)`
  return db
    .update(realmUse)
    .set({
      waiting: sql`${realmUse.waiting} + CAST(${slot('runs')} AS bigint)`,
      dispatched: sql`CASE WHEN ${goesOn} THEN ${realmUse.dispatched} ELSE 0 END + CAST(${slot('runs')} AS bigint)`,
      minute_at: sql`CASE WHEN ${goesOn} THEN ${realmUse.minute_at} ELSE CAST(${slot('now')} AS bigint) END`,
    })
    .where(eq(realmUse.realm_id, slot('realmId')))
    .returning({ waiting: realmUse.waiting, dispatched: realmUse.dispatched, minute_at: realmUse.minute_at })
})

/** Dispatched runs wait no longer: a daemon has accepted them, or nothing comes of them. */
export async function countEndOfWait({ store }: Hub, tx: Db, realmId: string, runs: number): Promise<void> {
  if (runs > 0) await subtractWaiting(store, tx, { realmId, runs })
}

const subtractWaiting = prepared((store, db, slot: Slot<'realmId' | 'runs'>) => {
  const { realmUse } = store
  return db
    .update(realmUse)
    .set({ waiting: sql`${realmUse.waiting} - CAST(${slot('runs')} AS bigint)` })
    .where(and(eq(realmUse.realm_id, slot('realmId')), isNotNull(realmUse.waiting)))
})

/** Counts a file that a daemon may send. Throws `too_large` when the realm has no room for it. */
export async function countStoredFile(hub: Hub, tx: Db, realmId: string, bytes: number): Promise<void> {
  const realm = await realmOf(hub, tx, realmId)
  const { stored_bytes: most } = quotasOf(hub, realm)
  if (most === null) return
  let used = await addBytes(hub, tx, realmId, 'stored_bytes', bytes)
  if (used === null) {
    await countQuotaUse(hub, tx, realm)
    used = await addBytes(hub, tx, realmId, 'stored_bytes', bytes)
  }
  if (used! <= most) return
  throw new CadreError(
    'too_large',
    `realm ${realm.slug} may store ${sizeText(most)} of files (quota stored_bytes), and has no room for ${sizeText(bytes)} more`,
    { reason: STORED_BYTES },
  )
}

/** How many bytes of log lines the realm has room for; null: any number. */
export async function logBytesLeft(hub: Hub, tx: Db, realmId: string): Promise<number | null> {
  const { realmUse } = hub.store
  const used = async () => {
    const where = eq(realmUse.realm_id, realmId)
    return (await tx.select({ bytes: realmUse.log_bytes }).from(realmUse).where(where))[0]?.bytes ?? null
  }
  const [realm, known] = await together([realmOf(hub, tx, realmId), used()])
  const { log_bytes: most } = quotasOf(hub, realm)
  if (most === null) return null
  if (known !== null) return Math.max(0, most - known)
  await countQuotaUse(hub, tx, realm)
  return Math.max(0, most - ((await used()) ?? 0))
}

/** Adds to what a realm uses, and returns the sum; null when it is not counted. */
export async function addBytes(
  { store: { realmUse } }: Hub,
  tx: Db,
  realmId: string,
  name: 'stored_bytes' | 'log_bytes',
  bytes: number,
): Promise<number | null> {
  const column = realmUse[name]
  const [row] = await tx
    .update(realmUse)
    .set({ [name]: sql`${column} + ${bytes}` })
    .where(and(eq(realmUse.realm_id, realmId), isNotNull(column)))
    .returning({ bytes: column })
  return row?.bytes ?? null
}

/**
 * Counts a stream as open while `items` are read. Throws `rate_limited` when the realm has as many as it may. A stream of
 * a hub that was killed is forgotten after a minute.
 */
export async function countedStream<T>(hub: Hub, realm: Realm, items: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  const { openStreams: streams } = hub.store
  const most = quotasOf(hub, realm).streams
  if (most === null) return items
  const id = crypto.randomUUID()
  const until = () => hub.lived() + STREAM_MS
  await hub.store.write(async tx => {
    const ofRealm = eq(streams.realm_id, realm.id)
    await tx.delete(streams).where(and(ofRealm, lte(streams.until, hub.lived())))
    if ((await total(tx, streams, ofRealm)) >= most)
      throw quotaExceeded('streams', realm, `${most} streams may be open`, 10)
    await tx.insert(streams).values({ id, realm_id: realm.id, until: until() })
  })
  const mine = eq(streams.id, id)
  async function* counted() {
    const renewing = setInterval(() => {
      void hub.store.write(tx => tx.update(streams).set({ until: until() }).where(mine)).catch(() => {})
    }, RENEW_MS)
    renewing.unref()
    try {
      yield* items
    } finally {
      clearInterval(renewing)
      await hub.store.write(tx => tx.delete(streams).where(mine)).catch(() => {})
    }
  }
  return counted()
}

async function realmOf({ store: { realms } }: Hub, tx: Db, id: string): Promise<Realm> {
  const { slug, quotas } = realms
  const [realm] = await tx.select({ id: realms.id, slug, quotas }).from(realms).where(eq(realms.id, id))
  return realm!
}

async function total(db: Db, table: SQLiteTable, where: SQL | undefined): Promise<number> {
  const [row] = await db.select({ total: count() }).from(table).where(where)
  return Number(row!.total)
}

function quotaExceeded(reason: Quota, { slug }: Realm, rule: string, retryAfter: number): CadreError {
  return new CadreError('rate_limited', `in realm ${slug} at most ${rule} (quota ${reason}); try again later`, {
    reason,
    retryAfter,
  })
}

const NAMES = Object.keys(QUOTAS) as Quota[]

/** The quotas that the operator of the hub sets: `CADRE_QUOTA_WAITING` and so on; null where nothing is set. Throws `invalid_request`. */
export function siteQuotas(env: Record<string, string | undefined>): QuotaValues {
  return valuesBy(name => {
    const variable = `CADRE_QUOTA_${name.toUpperCase()}`
    const text = env[variable]
    if (!text) return null
    const value = Number(text)
    if (/^[0-9]+$/.test(text) && Number.isSafeInteger(value)) return value
    throw new CadreError('invalid_request', `${variable}: expected a whole number, got ${text}`)
  })
}

/** A value for each quota. */
function valuesBy(of: (name: Quota) => number | null): QuotaValues {
  return Object.fromEntries(NAMES.map(name => [name, of(name)])) as QuotaValues
}
