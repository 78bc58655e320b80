// What this daemon remembers of the databases of its hubs: the highest count of commits that each has sent, which the
// daemon sends back with its calls. A hub that has a lower one is on an older copy. It then recalls what daemons have:
// everything is sent to it again, and it gets a report when that has been done.

import type { Store } from '../../run/engine.ts'
import type { Remembered } from '../../wire/protocol.ts'

/** Facts of the run database. */
const MEMORY = 'hub_memory'
const RECALL = 'hub_recall'
/** How many databases are remembered. */
const MOST = 20
/** How long what the hub sends may wait until it is stored. */
const STORE_MS = 500

/** `begun`: what the hub lacks is queued, or about to be. `done`: the hub has it, and knows so. */
interface Recall {
  id: string
  state: 'asked' | 'begun' | 'done'
}

type Known = Record<string, Omit<Remembered, 'recall'>>

export class HubCopies {
  readonly #facts: Store['facts']
  readonly #known: Known
  /** The database that was heard last. */
  #last: string | null
  #recall: Recall | null
  #timer: Timer | null = null

  constructor({ facts }: Pick<Store, 'facts'>) {
    this.#facts = facts
    this.#known = JSON.parse(facts.get(MEMORY) ?? '{}')
    this.#last = Object.keys(this.#known).at(-1) ?? null
    this.#recall = JSON.parse(facts.get(RECALL) ?? 'null')
  }

  /** What each call to the hub carries. */
  get callFields(): { memory?: Remembered } {
    return this.#last === null ? {} : { memory: this.#known[this.#last]! }
  }

  /** Takes in what a reply says. Returns whether the hub asks for everything that this daemon has. */
  learn(memory: Remembered | undefined): boolean {
    if (!memory) return false
    const { lineage, count, mac, recall } = memory
    const before = this.#known[lineage]
    if (before === undefined || count > before.count || this.#last !== lineage) {
      delete this.#known[lineage]
      this.#known[lineage] = before && before.count > count ? before : { lineage, count, mac }
      this.#last = lineage
      for (const old of Object.keys(this.#known).slice(0, -MOST)) delete this.#known[old]
      this.#timer ??= setTimeout(() => this.store(), STORE_MS)
    }
    if (recall === undefined || recall === this.#recall?.id) return false
    this.#setRecall({ id: recall, state: 'asked' })
    return true
  }

  /** What the hub waits for. */
  get recall(): Readonly<Recall> | null {
    return this.#recall?.state === 'done' ? null : this.#recall
  }

  /** Inside a transaction or not. */
  moveRecall(state: 'begun' | 'done'): void {
    if (this.#recall) this.#setRecall({ ...this.#recall, state })
  }

  #setRecall(recall: Recall): void {
    this.#recall = recall
    this.#facts.set(RECALL, JSON.stringify(recall))
  }

  /** Writes what the hub has sent. */
  store(): void {
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    try {
      this.#facts.set(MEMORY, JSON.stringify(this.#known))
    } catch {
      // The disk is full. The next reply is stored again.
    }
  }
}
