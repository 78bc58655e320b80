// Times that change with every call and do not deserve a commit each: when a token was last used, and when a daemon
// last called. They are kept in memory and written together, every two seconds and at the end.

import { eq, sql } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'

const FLUSH_MS = 2_000
/** A session expires this long after its last use. */
export const SESSION_MS = 30 * 86_400_000

export class LastSeen {
  readonly #store: Store
  readonly #log: Log
  readonly #now: () => number
  readonly #timer: Timer
  #tokens = new Map<number, number>()
  #daemons = new Map<string, number>()

  constructor(store: Store, log: Log, now: () => number) {
    this.#store = store
    this.#log = log
    this.#now = now
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
    this.#timer.unref()
  }

  noteTokenUse(id: number): void {
    this.#tokens.set(id, this.#now())
  }

  noteDaemonCall(id: string): void {
    this.#daemons.set(id, this.#now())
  }

  /** When the daemon last called. `stored` is the time in its row. */
  lastCallOf(id: string, stored: number): number {
    return Math.max(stored, this.#daemons.get(id) ?? 0)
  }

  async flush(): Promise<void> {
    if (this.#tokens.size === 0 && this.#daemons.size === 0) return
    const [used, heard] = [this.#tokens, this.#daemons]
    this.#tokens = new Map()
    const { tokens, daemons } = this.#store
    // A session's expiry is moved at most once a day, so that not every use changes its row.
    const slid = (at: number) =>
      sql`CASE WHEN ${tokens.kind} = 'session' AND ${tokens.expires_at} < ${at + SESSION_MS - 86_400_000}
        THEN ${at + SESSION_MS} ELSE ${tokens.expires_at} END`
    try {
      await this.#store.write(async tx => {
        // Sorted by id, because hubs that update the same rows in different orders would deadlock.
        for (const [id, at] of [...used].sort(([a], [b]) => a - b)) {
          await tx
            .update(tokens)
            .set({ last_used_at: at, expires_at: slid(at) })
            .where(eq(tokens.id, id))
        }
        for (const [id, at] of [...heard].sort(([a], [b]) => (a < b ? -1 : 1))) {
          await tx.update(daemons).set({ last_seen_at: at }).where(eq(daemons.id, id))
        }
      })
      for (const [id, at] of heard) if (this.#daemons.get(id) === at) this.#daemons.delete(id)
    } catch (error) {
      this.#log.warn('the times of last use could not be written', { error: messageOf(error).split('\n', 1)[0] })
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
