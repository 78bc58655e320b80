// The ids that the hub gives to runs and jobs, greater than those of all runs in its database: lists are in their order.

import { and, desc, lt, sql } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'
import { CHOSEN_FROM, RunIds } from '../../files/run-ids.ts'

/** How long the greatest id that was read counts: other hubs, and reports of daemons, bring greater ones. */
const LOOK_MS = 1_000

export class HubRunIds {
  readonly #store: Store
  readonly #ids: RunIds
  #lookedAt = Number.NEGATIVE_INFINITY
  #look: Promise<void> | null = null

  constructor(store: Store, clock: () => number) {
    this.#store = store
    this.#ids = new RunIds({ clock, leavesRoom: true })
  }

  next(): string {
    return this.#ids.next()
  }

  /**
   * Reads the greatest id, unless that was done within a second. It is called before a transaction that makes ids: within
   * it, PostgreSQL would undo the transaction when another one inserts a run.
   */
  async look(): Promise<void> {
    if (performance.now() - this.#lookedAt < LOOK_MS) return
    this.#look ??= this.#read().finally(() => (this.#look = null))
    await this.#look
  }

  async #read(): Promise<void> {
    const { db, runs } = this.#store
    const [greatest] = await db
      .select({ id: runs.run_id })
      .from(runs)
      .where(and(lt(runs.run_id, CHOSEN_FROM), sql`substr(${runs.run_id}, 15, 1) = '7'`))
      .orderBy(desc(runs.run_id))
      .limit(1)
    if (greatest) this.#ids.note(greatest.id)
    this.#lookedAt = performance.now()
  }
}
