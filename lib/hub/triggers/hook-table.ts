// Tables `hooks`, `hook_secrets` and `hook_bodies`: the addresses of hooks, what they share with senders, and what senders
// sent, sealed. Every statement about them is here.

import { and, asc, eq, inArray, isNotNull, isNull, lt, ne, or, sql } from 'drizzle-orm'
import type { Sealed } from '../../../db/hub/columns.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { newToken } from '../../firing/hook-door.ts'
import type { Sent } from '../../firing/hook-firing.ts'
import { mustBeChangeable, type SecretChange } from '../../firing/hook-secrets.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import type { Hub } from '../core/hub.ts'
import type { Sealer } from '../core/sealer.ts'
import type { RealmTrigger } from './trigger-table.ts'

export async function insertHook({ hooks }: Store, tx: Db, triggerId: string): Promise<void> {
  await tx.insert(hooks).values({ trigger_id: triggerId, token: newToken() })
}

export async function tokenOf({ hooks }: Store, db: Db, triggerId: string): Promise<string> {
  const [row] = await db.select({ token: hooks.token }).from(hooks).where(eq(hooks.trigger_id, triggerId))
  return row!.token
}

/** The hook that has this token, unless it is disabled or removed. */
export async function hookWith({ hooks, triggers, db }: Store, token: string): Promise<RealmTrigger<Hook> | null> {
  const [row] = await db
    .select({ trigger: triggers })
    .from(hooks)
    .innerJoin(triggers, eq(triggers.id, hooks.trigger_id))
    .where(and(eq(hooks.token, token), eq(triggers.enabled, true), isNull(triggers.removed_at)))
  return row ? (row.trigger as RealmTrigger<Hook>) : null
}

/** The secrets of a hook, the oldest first, also those that fit no more. */
export const secretRows = ({ hookSecrets }: Store, db: Db, triggerId: string) =>
  db
    .select()
    .from(hookSecrets)
    .where(eq(hookSecrets.trigger_id, triggerId))
    .orderBy(asc(hookSecrets.created_at), asc(hookSecrets.id))

export type SecretRow = Awaited<ReturnType<typeof secretRows>>[number]

/** Those that this hub can open. */
export const openedSecrets = (sealer: Sealer, rows: readonly SecretRow[]): string[] =>
  rows.flatMap(({ sealed }) => opened(sealer, sealed) ?? [])

/** Throws `not_found`, and `conflict` when none or more than two would fit. */
export async function changeSecrets(
  { store, sealer }: Hub,
  tx: Db,
  trigger_id: string,
  { add, expire }: SecretChange,
  now: number,
): Promise<void> {
  const { hookSecrets } = store
  const rows = await secretRows(store, tx, trigger_id)
  mustBeChangeable(
    rows.filter(({ expires_at }) => expires_at === null),
    { add, expire },
  )
  if (add !== undefined) {
    // Nobody needs to see for ever which fit no more.
    await tx.delete(hookSecrets).where(and(eq(hookSecrets.trigger_id, trigger_id), isNotNull(hookSecrets.expires_at)))
    const row = { id: Bun.randomUUIDv7(), trigger_id, sealed: sealer.seal(add), created_at: now, expires_at: null }
    await tx.insert(hookSecrets).values(row)
  }
  if (expire !== undefined) await tx.update(hookSecrets).set({ expires_at: now }).where(eq(hookSecrets.id, expire))
}

/** `delete_at`: by the believed time; null: it is kept only while the firing waits. */
export async function keepBody(
  { store, sealer }: Hub,
  tx: Db,
  firing_id: string,
  sent: Sent,
  delete_at: number | null,
) {
  const { hookBodies } = store
  const row = { sealed: sealer.seal(written(sent)), delete_at }
  const into = tx.insert(hookBodies).values({ firing_id, ...row })
  await into.onConflictDoUpdate({ target: hookBodies.firing_id, set: row })
}

/** What came with a firing; null when it is not kept. Throws `invalid_state` when it cannot be opened. */
export async function sentWith({ store, sealer }: Hub, db: Db, firingId: string): Promise<Sent | null> {
  const { hookBodies } = store
  const [row] = await db.select().from(hookBodies).where(eq(hookBodies.firing_id, firingId))
  if (!row) return null
  const text = opened(sealer, row.sealed)
  if (text === null) throw new CadreError('invalid_state', 'the delivery was sealed with another CADRE_HUB_KEY')
  return read(text)
}

/** The firing waits no more. */
export async function waited({ hookBodies }: Store, tx: Db, firingId: string): Promise<void> {
  await tx.delete(hookBodies).where(and(eq(hookBodies.firing_id, firingId), isNull(hookBodies.delete_at)))
}

/** Deletes at most `most` that are old by the believed time, but for firings that wait. Returns how many. */
export async function deleteOldBodies({ store }: Hub, before: number, most: number): Promise<number> {
  const { hookBodies, firings, db } = store
  const { firing_id, delete_at } = hookBodies
  const isOld = or(lt(delete_at, before), isNull(delete_at))
  const old = await db
    .select({ firing_id })
    .from(hookBodies)
    .innerJoin(firings, eq(firings.id, firing_id))
    .where(and(isOld, ne(firings.state, sql`'waiting'`)))
    .limit(most)
  if (old.length === 0) return 0
  const ids = old.map(row => row.firing_id)
  await store.write(tx => tx.delete(hookBodies).where(inArray(firing_id, ids)))
  return ids.length
}

/** Text stays as it is, so that it is not written in base64 twice. */
function written({ query, body }: Sent): string {
  const bytes = Buffer.from(body)
  const text = bytes.toString()
  return JSON.stringify(Buffer.from(text).equals(bytes) ? { query, text } : { query, base64: bytes.toString('base64') })
}

function read(written: string): Sent {
  const { query, text, base64 } = JSON.parse(written)
  return { query, body: text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text) }
}

function opened(sealer: Sealer, sealed: Sealed): string | null {
  try {
    return sealer.open(sealed)
  } catch {
    return null
  }
}
