// The hash chains of the hub's audit log: one an org, and one for what belongs to no org. Entries are written in the
// transaction of the action that they record, without a hash. They are sealed afterwards (core/sealing.ts, and a chore), in
// the order of their ids, and the messages about them are queued. Of several hubs on one database, one at a time seals: they wait for each other at a row.

import { and, asc, count, desc, eq, gt, inArray, isNotNull, isNull, lte, ne, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { batchUpdater, batchWriter } from '../../../db/hub/batch-writer.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db } from '../../../db/hub/store.ts'
import { GENESIS, type Link, sealOf } from '../../audit/audit-chain.ts'
import type { AuditSource, Sealed } from '../../audit/audit-export.ts'
import { SEAL } from '../access/audit.ts'
import type { Hub } from '../core/hub.ts'
import { queueAuditMessages } from './webhooks.ts'

type AuditRow = Tables['audit']['$inferSelect']
type ChainRow = Tables['auditChains']['$inferSelect']
/** What an entry is, without where it was sealed. */
type Entry = Omit<AuditRow, (typeof SEAL)[number]>

/** How many entries are sealed in one transaction. */
const SEALED_AT_ONCE = 500
/** Other writes come between two transactions. */
const REST_MS = 5

export const chainOf = (orgId: number | null): string => (orgId === null ? 'hub' : `org:${orgId}`)

/** The row that counts the entries of all chains. */
const ALL = '*'

/** Seals every entry that is not sealed. Returns how many. */
export async function sealAudit(hub: Hub): Promise<number> {
  let sealed = 0
  for (;;) {
    const some = await sealNext(hub)
    sealed += some
    if (some < SEALED_AT_ONCE) return sealed
    await Bun.sleep(REST_MS)
  }
}

/** Does the same in steps, as a chore. */
export async function* sealInSteps(hub: Hub): AsyncGenerator<void> {
  while ((await sealNext(hub)) === SEALED_AT_ONCE) yield
}

/** Seals the oldest entries that are not sealed. Returns how many. Mostly there are none, and it writes nothing. */
async function sealNext(hub: Hub): Promise<number> {
  const { audit, db } = hub.store
  const [due] = await db.select({ id: audit.id }).from(audit).where(isNull(audit.position)).limit(1)
  return due ? hub.store.writeAfter(tx => sealSome(hub, tx)) : 0
}

async function sealSome(hub: Hub, tx: Db): Promise<number> {
  const { store } = hub
  const { audit, auditChains } = store
  const last = await lockChains(store, tx)
  const due = await tx.select().from(audit).where(isNull(audit.position)).orderBy(asc(audit.id)).limit(SEALED_AT_ONCE)
  if (due.length === 0) return 0
  let position = last
  const names = [...new Set(due.map(({ org_id }) => chainOf(org_id)))]
  const known = await tx.select().from(auditChains).where(inArray(auditChains.chain, names))
  const heads = new Map<string, Link & Pick<ChainRow, 'position' | 'org_id'>>(known.map(row => [row.chain, row]))
  const sealed = due.map(({ position: _, seq: __, hash: ___, ...entry }) => {
    const chain = chainOf(entry.org_id)
    const head = heads.get(chain) ?? GENESIS
    const seq = head.seq + 1
    const hash = sealOf(head.hash, { ...entry, chain, seq })
    heads.set(chain, { seq, hash, position: ++position, org_id: entry.org_id })
    return { ...entry, chain, seq, hash, position }
  })
  await putSeals(store, tx, sealed)
  const anchor = { anchor_seq: GENESIS.seq, anchor_hash: GENESIS.hash }
  await putHeads(
    store,
    tx,
    [...heads, [ALL, { ...GENESIS, position, org_id: null }] as const].map(
      ([chain, { seq, hash, position, org_id }]) => {
        return { chain, seq, hash, position, org_id, ...anchor }
      },
    ),
  )
  await queueAuditMessages(hub, tx, sealed)
  return due.length
}

/**
 * The last position. Until the transaction ends, no other one seals or removes: it waits for the row. What is read from
 * here on has all that earlier ones did.
 */
async function lockChains({ auditChains }: Tables, tx: Db): Promise<number> {
  const none = { seq: GENESIS.seq, hash: GENESIS.hash, anchor_seq: GENESIS.seq, anchor_hash: GENESIS.hash }
  const [row] = await tx
    .insert(auditChains)
    .values({ chain: ALL, position: 0, ...none })
    .onConflictDoUpdate({ target: auditChains.chain, set: { position: sql`${auditChains.position}` } })
    .returning({ position: auditChains.position })
  return row!.position
}

const putSeals = batchUpdater(({ audit }) => audit, { key: 'id', set: SEAL })

const putHeads = batchWriter(({ auditChains }) => auditChains, {
  left: ['anchor_at'],
  key: ['chain'],
  keeps: ['org_id', 'anchor_seq', 'anchor_hash'],
})

/**
 * Removes the oldest sealed entries, those before `before` and before every younger one, and puts an anchor in their
 * place. Returns how many, at most `most`.
 */
export async function deleteOldEntries({ store }: Pick<Hub, 'store'>, before: number, most: number): Promise<number> {
  const { audit, auditChains } = store
  const [first] = await oldestSealed(store, store.db, 1)
  if (!first || first.at >= before) return 0
  return store.writeAfter(async tx => {
    await lockChains(store, tx)
    const found = await oldestSealed(store, tx, most)
    const young = found.findIndex(({ at }) => at >= before)
    const old = young === -1 ? found : found.slice(0, young)
    const last = new Map(old.map(row => [chainOf(row.org_id), row]))
    for (const [chain, { seq, hash, at }] of last) {
      const anchor = { anchor_seq: seq!, anchor_hash: hash!, anchor_at: at }
      await tx.update(auditChains).set(anchor).where(eq(auditChains.chain, chain))
    }
    const end = old.at(-1)
    if (end) await tx.delete(audit).where(lte(audit.position, end.position!))
    return old.length
  })
}

const oldestSealed = ({ audit }: Tables, db: Db, most: number) =>
  db
    .select({ at: audit.at, org_id: audit.org_id, position: audit.position, seq: audit.seq, hash: audit.hash })
    .from(audit)
    .where(isNotNull(audit.position))
    .orderBy(asc(audit.position))
    .limit(most)

/** What an export reads: of one org, of what belongs to none, or of what `within` says. */
export function auditSource(
  { store }: Pick<Hub, 'store'>,
  within: (orgId: SQLiteColumn) => SQL | undefined,
): AuditSource<Sealed & Entry> {
  const { audit, auditChains, db } = store
  return {
    async chains() {
      const rows = await db
        .select()
        .from(auditChains)
        .where(and(ne(auditChains.chain, ALL), within(auditChains.org_id)))
        .orderBy(asc(auditChains.chain))
      return rows.map(({ org_id: _, anchor_seq, anchor_hash, anchor_at, ...head }) => ({
        ...head,
        anchor: { seq: anchor_seq, hash: anchor_hash, at: anchor_at },
      }))
    },
    async unsealed() {
      const rows = await db
        .select({ org_id: audit.org_id, count: count() })
        .from(audit)
        .where(and(isNull(audit.position), within(audit.org_id)))
        .groupBy(audit.org_id)
      return new Map(rows.map(row => [chainOf(row.org_id), Number(row.count)]))
    },
    async entries(after, most) {
      const rows = await db
        .select()
        .from(audit)
        .where(and(gt(audit.position, after), within(audit.org_id)))
        .orderBy(asc(audit.position))
        .limit(most)
      return rows.map(row => {
        const { position, seq, hash, ...entry } = row
        return { ...entry, chain: chainOf(row.org_id), position: position!, seq: seq!, hash: hash! }
      })
    },
    async before(chain, position) {
      const org = chain === chainOf(null) ? isNull(audit.org_id) : eq(audit.org_id, Number(chain.split(':')[1]))
      const [row] = await db
        .select({ seq: audit.seq, hash: audit.hash })
        .from(audit)
        .where(and(org, lte(audit.position, position)))
        .orderBy(desc(audit.position))
        .limit(1)
      return row ? { seq: row.seq!, hash: row.hash! } : null
    },
  }
}
