// Which keys the hubs of a database hold (`CADRE_HUB_KEY`), and which of them seals. The database lists the keys that its
// sealed values may need, and a hub that lacks one of them does not start: it would serve dispatch keys and secrets that it
// cannot read. A hub seals with the first of its keys that every living hub holds, so that a new key can be given to one
// hub after the other. A key is listed before anything is sealed with it.

import { eq, like, ne } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { type LivingHub, livingHubs } from '../core/living-hubs.ts'
import type { Sealer } from '../core/sealer.ts'
import { sealedTables } from './sealed-columns.ts'

export interface KeyParts {
  store: Store
  log: Log
  sealer: Sealer
  now: () => number
  /** The id of this hub in `hubProcesses`. */
  process: string
}

export class HubKeys {
  readonly #parts: KeyParts
  #lacking: readonly string[] = []

  constructor(parts: KeyParts) {
    this.#parts = parts
  }

  /** Throws `invalid_request` when the database needs a key that this hub lacks. Nothing may be sealed before. */
  async check(): Promise<void> {
    const { store, sealer, now } = this.#parts
    const listed = (await store.db.select({ id: store.sealingKeys.id }).from(store.sealingKeys)).map(({ id }) => id)
    const needed = listed.length > 0 ? listed : await this.#keysOfSamples()
    if (needed.some(id => !sealer.keyIds.includes(id))) throw new CadreError('invalid_request', missing(sealer))
    for (const id of needed) await listKey(store, id, now())
  }

  /** Chooses the key that seals, by what the other living hubs hold, and notes what this one holds. */
  async refresh(): Promise<void> {
    const { store, log, sealer, now, process } = this.#parts
    const hubs = await livingHubs(store)
    const others = hubs.filter(({ id }) => id !== process)
    const [first] = sealer.keyIds
    if (first !== undefined) {
      // Hubs of earlier versions do not say what they hold, and one without any key can open nothing that is sealed.
      const holders = others.filter(({ keys }) => keys)
      const chosen = sealer.keyIds.find(id => holders.every(({ keys }) => keys!.split(' ').includes(id))) ?? first
      if (chosen !== sealer.sealsWith || !(await isListed(store, chosen))) {
        await listKey(store, chosen, now())
        sealer.sealWith(chosen)
      }
    }
    const lacking = first === undefined ? [] : lackKey(others, first)
    if (lacking.length > 0 && lacking.join() !== this.#lacking.join()) {
      log.warn('hubs lack the first key of CADRE_HUB_KEY: add it to theirs and restart them', { hubs: lacking })
    }
    this.#lacking = lacking
    const keys = this.text()
    if (hubs.some(({ id, keys: noted }) => id === process && noted === keys)) return
    const { hubProcesses } = store
    await store.write(tx => tx.update(hubProcesses).set({ keys }).where(eq(hubProcesses.id, process)))
  }

  /** The keys that this hub holds as `hubProcesses` lists them: the ids, with spaces between, first the one that seals. */
  text(): string {
    const { keyIds, sealsWith } = this.#parts.sealer
    return [sealsWith, ...keyIds.filter(id => id !== sealsWith)].filter(id => id !== null).join(' ')
  }

  /** The ids of living hubs that lack the first key of this one, as far as `refresh` saw. */
  get lacking(): readonly string[] {
    return this.#lacking
  }

  /** The keys of sealed values of a database that lists none: one value of each column, because one key sealed them all. */
  async #keysOfSamples(): Promise<string[]> {
    const { store, sealer } = this.#parts
    const found = new Set<string>()
    for (const { table, sealed } of sealedTables(store)) {
      const [row] = await store.db.select({ sealed }).from(table).where(like(sealed, 'sealed:%')).limit(1)
      if (row) found.add(sealer.keyOf(row.sealed))
    }
    return [...found].filter(id => id !== 'plain')
  }
}

/** The ids of the hubs that do not hold a key. */
export const lackKey = (hubs: readonly LivingHub[], keyId: string): string[] =>
  hubs.filter(({ keys }) => !keys?.split(' ').includes(keyId)).map(({ id }) => id)

/** Lists a key as one that sealed values may need. */
export async function listKey(store: Store, id: string, created_at: number): Promise<void> {
  if (await isListed(store, id)) return
  await store.write(tx => tx.insert(store.sealingKeys).values({ id, created_at }).onConflictDoNothing())
}

/** Lists no key but this one. */
export const listOnly = ({ write, sealingKeys }: Store, id: string) =>
  write(tx => tx.delete(sealingKeys).where(ne(sealingKeys.id, id)))

async function isListed({ db, sealingKeys }: Store, id: string): Promise<boolean> {
  return (await db.select({ id: sealingKeys.id }).from(sealingKeys).where(eq(sealingKeys.id, id))).length > 0
}

function missing({ keyIds }: Sealer): string {
  const has =
    keyIds.length === 0
      ? 'CADRE_HUB_KEY is not set, and the database holds values that a hub with a key has sealed'
      : 'CADRE_HUB_KEY lacks a key that values of the database are sealed with'
  return `${has}: start with the key that the hub had before; to change it, list both as CADRE_HUB_KEY=new,old and run the command \`key rotate\`; if it is lost, run \`key rotate --give-up-lost\``
}
