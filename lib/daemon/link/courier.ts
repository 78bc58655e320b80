// Brings what synced runs did to the hub, one batch after the other. A batch is small enough that the hub applies it
// within a fraction of a second, because on SQLite all other writes of the hub wait for it.

import { CadreError } from '../../error.ts'
import type { Log } from '../../log.ts'
import type { Store, SyncOutbox } from '../../run/engine.ts'
import { ackedOf, PROTOCOL, Sync } from '../../wire/protocol.ts'
import type { HubClient } from './hub-client.ts'

/** How large a batch may be. The hub takes 4 MiB. */
const SMALLEST_BYTES = 100_000
const LARGEST_BYTES = 3_500_000
const FIRST_BYTES = 800_000
/**
 * Batches grow when one that was about as large as it may be took less than the first time. They shrink when one took
 * more than the second, or was not taken.
 */
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
  /** What programs between daemon and hub were seen to take. */
  #most = LARGEST_BYTES

  constructor(options: CourierOptions) {
    this.#options = options
  }

  /** Sends the next batch. Returns false when nothing waits. Throws the hub's error, or `unavailable`. */
  async send(daemon_id: string, signal: AbortSignal): Promise<boolean> {
    const { client, store, outbox, log } = this.#options
    const batch = await outbox.take(this.#bytes)
    if (!batch) return false
    const { from_seq, changes, bytes } = batch
    const epoch = store.facts.once('epoch', () => crypto.randomUUID())
    const started = performance.now()
    try {
      const body = { daemon_id, protocol: PROTOCOL, epoch, from_seq, changes }
      const { rejected } = await client.call(Sync, body, { signal })
      if (rejected.length > 0) log.warn('the hub refused changes', { rejected })
    } catch (error) {
      if (ackedOf(error) === null) {
        this.#shrink(bytes)
        if (error instanceof CadreError && error.code === 'too_large') this.#most = this.#bytes
        throw error
      }
      this.restart()
      return true
    }
    await outbox.acknowledge()
    const took = performance.now() - started
    if (took > SLOW_MS) this.#shrink(this.#bytes)
    else if (took < FAST_MS && bytes > this.#bytes / 2) this.#bytes = Math.min(this.#most, this.#bytes * 2)
    return true
  }

  /** Sends all runs again, because the hub lost what it had of them. */
  restart(): void {
    const { outbox, log } = this.#options
    outbox.restart(log)
  }

  /** To half of the size that was too much. */
  #shrink(bytes: number): void {
    this.#bytes = Math.max(SMALLEST_BYTES, Math.min(this.#bytes, bytes) / 2)
  }
}
