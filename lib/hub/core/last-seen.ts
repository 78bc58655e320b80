// Times that change with every call and do not deserve a commit each: when a token was last used, and when a daemon
// last called. They are kept in memory and written together, every two seconds and at the end.

import { eq, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Store } from '../../../db/hub/store.ts'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import type { HubClock } from './hub-clock.ts'

const FLUSH_MS = 2_000

type Standing = Tables['daemons']['$inferSelect']['standing']
type DaemonCall = Pick<Tables['daemons']['$inferSelect'], 'id' | 'last_seen_at' | 'called_at'>

interface Call {
  /** In lived time, and by the clock. */
  lived: number
  at: number
  /** What it said with the call or with one before it. */
  standing?: Standing
}

/** A session expires this long after its last use. */
export const SESSION_MS = 30 * 86_400_000

export class LastSeen {
  readonly #store: Store
  readonly #log: Log
  readonly #clock: Pick<HubClock, 'now' | 'lived'>
  readonly #timer: Timer
  #tokens = new Map<number, number>()
  #daemons = new Map<string, Call>()

  constructor(store: Store, log: Log, clock: Pick<HubClock, 'now' | 'lived'>) {
    this.#store = store
    this.#log = log
    this.#clock = clock
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
    this.#timer.unref()
  }

  noteTokenUse(id: number): void {
    this.#tokens.set(id, this.#clock.now())
  }

  noteDaemonCall(id: string): Call {
    const call: Call = { lived: this.#clock.lived(), at: this.#clock.now() }
    const said = this.#daemons.get(id)?.standing
    this.#daemons.set(id, said ? { ...call, standing: said } : call)
    return call
  }

  /** It is written with the time of the call that said it. */
  noteStanding(id: string, standing: Standing): void {
    const call = this.#daemons.get(id) ?? this.noteDaemonCall(id)
    this.#daemons.set(id, { ...call, standing })
  }

  /** How the daemon stands, as far as it was heard of here or its row says. */
  standingOf({ id, standing }: Pick<Tables['daemons']['$inferSelect'], 'id' | 'standing'>): Standing {
    return this.#daemons.get(id)?.standing ?? standing
  }

  /** When the daemon last called. Other hubs may have written a later call in its row. */
  lastCallOf({ id, last_seen_at, called_at }: DaemonCall): Call {
    const stored = { lived: last_seen_at, at: called_at ?? last_seen_at }
    const called = this.#daemons.get(id)
    return called && called.lived >= stored.lived ? called : stored
  }

  async flush(): Promise<void> {
    if (this.#tokens.size === 0 && this.#daemons.size === 0) return
    const [used, called] = [this.#tokens, this.#daemons]
    this.#tokens = new Map()
    const { tokens, daemons } = this.#store
    // A session's expiry is moved at most once a day, so that not every use changes its row. It is never moved back: after a
    // use while the clock was behind, the session would have ended when the clock is right again.
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
        for (const [id, { lived, at, standing }] of [...called].sort(([a], [b]) => (a < b ? -1 : 1))) {
          const values = { last_seen_at: lived, called_at: at, ...(standing && { standing }) }
          await tx.update(daemons).set(values).where(eq(daemons.id, id))
        }
      })
      for (const [id, call] of called) if (this.#daemons.get(id) === call) this.#daemons.delete(id)
    } catch (error) {
      this.#log.warn('the times of last use could not be written', { error: messageOf(error).split('\n', 1)[0] })
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
