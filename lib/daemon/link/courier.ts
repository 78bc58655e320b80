// Brings what synced runs did to the hub, one batch after the other. A batch is small enough that the hub applies it
// within a fraction of a second, because on SQLite all other writes of the hub wait for it.

import type { Log } from '../../log.ts'
import type { Store, SyncOutbox } from '../../run/engine.ts'
import { ackedOf, PROTOCOL, Sync } from '../../wire/protocol.ts'
import type { HubClient } from './hub-client.ts'

/** How large a batch may be. The hub takes 4 MiB. */
const SMALLEST_BYTES = 100_000
const LARGEST_BYTES = 3_500_000
const FIRST_BYTES = 800_000
/** A batch grows when the last one took less than the first time, and shrinks when it took more than the second. */
const FAST_MS = 150
const SLOW_MS = 400

export interface CourierOptions {
  client: HubClient
  store: Store
  outbox: SyncOutbox
  log: Log
}

export class Courier {
  readonly #options: CourierOptions
  #bytes = FIRST_BYTES

  constructor(options: CourierOptions) {
    this.#options = options
  }

  /** Sends the next batch. Returns false when nothing waits. Throws the hub's error, or `unavailable`. */
  async send(daemon_id: string, signal: AbortSignal): Promise<boolean> {
    const { client, store, outbox, log } = this.#options
    const batch = await outbox.take(this.#bytes)
    if (!batch) return false
    const epoch = store.facts.once('epoch', () => crypto.randomUUID())
    const started = performance.now()
    try {
      const { rejected } = await client.call(Sync, { daemon_id, protocol: PROTOCOL, epoch, ...batch }, { signal })
      await outbox.acknowledge()
      if (rejected.length > 0) log.warn('the hub refused changes', { rejected })
    } catch (error) {
      if (ackedOf(error) === null) throw error
      outbox.restart(log)
    }
    this.#adapt(performance.now() - started)
    return true
  }

  #adapt(took: number): void {
    if (took < FAST_MS) this.#bytes = Math.min(LARGEST_BYTES, this.#bytes * 2)
    else if (took > SLOW_MS) this.#bytes = Math.max(SMALLEST_BYTES, this.#bytes / 2)
  }
}
