// `cadre hub key rotate`: seals everything again with the first key of CADRE_HUB_KEY, so that the other ones can be dropped.
// It goes through the tables in parts, beside hubs that serve, and can be ended and run again at any moment.

import { and, asc, eq, gt } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { record } from '../access/audit.ts'
import type { Hub } from '../core/hub.ts'
import { livingHubs } from '../core/living-hubs.ts'
import { lackKey, listKey, listOnly } from './hub-keys.ts'
import { sealedTables } from './sealed-columns.ts'

const PART = 200
/** A hub that has been given the key seals with it after its next two heartbeats, which come every ten seconds. */
const PATIENCE_MS = 45_000

/**
 * Returns what was done, in lines. Values that no key of this hub opens are an error, or are left as they are with
 * `giveUpLost`: then hubs start without their key, and whoever needs such a value is told to make it anew.
 */
export async function rotateHubKey(hub: Hub, { giveUpLost = false } = {}): Promise<string[]> {
  const { store, sealer } = hub
  const [first] = sealer.keyIds
  if (first === undefined) {
    throw new CadreError('invalid_request', 'CADRE_HUB_KEY is not set: set it to the new key, or to new,old')
  }
  sealer.sealWith(first)
  await hubsSealWith(hub, first)
  await listKey(store, first, hub.now())
  const tables = sealedTables(store).map(table => ({ ...table, resealed: 0, lost: 0 }))
  // A hub that started meanwhile may have sealed with an old key until it saw the others.
  for (let resealed = -1; resealed !== 0; ) {
    resealed = 0
    for (const table of tables) {
      const done = await resealTable(hub, table, first)
      table.resealed += done.resealed
      table.lost = done.unopened
      resealed += done.resealed
    }
    await hubsSealWith(hub, first)
  }
  const named = (count: number, [one, many]: readonly [string, string]) => `${count} ${count === 1 ? one : many}`
  const resealed = tables.filter(each => each.resealed > 0).map(each => named(each.resealed, each.words))
  const lost = tables.filter(each => each.lost > 0).map(each => named(each.lost, each.words))
  if (lost.length > 0 && !giveUpLost) {
    throw new CadreError(
      'invalid_state',
      `no key of CADRE_HUB_KEY opens ${lost.join(', ')}: add the key that sealed them; if it is lost, run this command with --give-up-lost`,
    )
  }
  await listOnly(store, first)
  await store.write(tx => record(hub, tx, null, { action: 'key rotate', target: first }))
  return [
    resealed.length > 0 ? `sealed again: ${resealed.join(', ')}` : 'everything was sealed with the new key already',
    ...(lost.length > 0 ? [`given up: ${lost.join(', ')}; make them anew`] : []),
    'every hub can now be started with the new key alone',
  ]
}

/** Waits until every living hub seals with a key. Throws `conflict` when one of them lacks it. */
async function hubsSealWith({ store }: Hub, keyId: string): Promise<void> {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    const hubs = await livingHubs(store)
    const lacking = lackKey(hubs, keyId)
    if (lacking.length > 0) {
      throw new CadreError(
        'conflict',
        `${lacking.length === 1 ? 'a hub that serves this database lacks' : `${lacking.length} hubs that serve this database lack`} the new key: add it to the CADRE_HUB_KEY of every hub, restart them, and run this command again (${lacking.join(', ')})`,
      )
    }
    const late = hubs.filter(({ keys }) => !keys!.startsWith(keyId)).map(({ id }) => id)
    if (late.length === 0) return
    if (performance.now() > until) {
      throw new CadreError(
        'conflict',
        `a hub still seals with another key: put the new key first in the CADRE_HUB_KEY of every hub, restart them, and run this command again (${late.join(', ')})`,
      )
    }
    await Bun.sleep(1_000)
  }
}

async function resealTable({ store, sealer }: Hub, each: ReturnType<typeof sealedTables>[number], keyId: string) {
  const { table, id: idColumn, sealed, set } = each
  let after = ''
  let resealed = 0
  let unopened = 0
  for (;;) {
    const part = await store.db
      .select({ id: idColumn, text: sealed })
      .from(table)
      .where(gt(idColumn, after))
      .orderBy(asc(idColumn))
      .limit(PART)
    if (part.length === 0) return { resealed, unopened }
    after = part.at(-1)!.id
    const former = part.map(row => ({ ...row, by: sealer.keyOf(row.text) })).filter(({ by }) => by !== keyId)
    unopened += former.filter(({ by }) => by === 'unknown').length
    const open = former.filter(({ by }) => by !== 'unknown')
    if (open.length === 0) continue
    await store.write(async tx => {
      for (const { id, text } of open) {
        // A value that was changed meanwhile was sealed with the new key.
        const same = and(eq(idColumn, id), eq(sealed, text))
        await tx
          .update(table)
          .set(set(sealer.seal(sealer.open(text))))
          .where(same)
      }
    })
    resealed += open.length
  }
}
