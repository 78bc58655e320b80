// The calls that wait for a connection to the database, in the order in which they came. So many wait at most, and for so
// long; all others are refused.

import { busy } from './postgres-refusals.ts'

interface WaitingCall<T> extends PromiseWithResolvers<T> {
  begunAt: number
  /** In ticks. These stand still while this process does. */
  since: number
  isRead: boolean
}

export interface QueueFigures {
  waiting: number
  /** Calls that have got a connection after they had waited, and how long all of them had. */
  waited: number
  waitedMs: number
  /** Calls that got none, because too many waited, or because they had waited for too long. */
  refused: number
}

interface QueueLimits {
  /** How many wait at most. */
  most: number
  /** For how many calls of `tick` one waits at most. */
  ticks: number
  /** Why calls wait in vain, where it is not because there are too many. */
  reason(): Error | null
}

export class WaitingCalls<T> {
  readonly #limits: QueueLimits
  readonly #calls = new Set<WaitingCall<T>>()
  readonly #figures = { waited: 0, waitedMs: 0, refused: 0 }
  #ticks = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#calls.size
  }

  get figures(): QueueFigures {
    return { waiting: this.size, ...this.#figures }
  }

  /** Throws `unavailable` when too many wait. `isRead`: others may use the connection too. */
  add(isRead: boolean): Promise<T> {
    if (this.size >= this.#limits.most) throw this.#inVain()
    const call = { ...Promise.withResolvers<T>(), begunAt: performance.now(), since: this.#ticks, isRead }
    this.#calls.add(call)
    return call.promise
  }

  /**
   * Gives `connectionFor` what it returns to the calls, the first one first. It returns `null` where the call waits on,
   * and `undefined` where all others do, too.
   */
  give(connectionFor: (isRead: boolean) => T | null | undefined): void {
    for (const call of this.#calls) {
      const connection = connectionFor(call.isRead)
      if (connection === undefined) return
      if (connection === null) continue
      this.#calls.delete(call)
      this.#figures.waited++
      this.#figures.waitedMs += performance.now() - call.begunAt
      call.resolve(connection)
    }
  }

  refuse(error: unknown): void {
    for (const call of this.#calls) call.reject(error)
    this.#calls.clear()
  }

  /** Refuses those that have waited for too long. */
  tick(): void {
    this.#ticks++
    for (const call of this.#calls) {
      if (this.#ticks - call.since <= this.#limits.ticks) break
      this.#calls.delete(call)
      call.reject(this.#inVain())
    }
  }

  #inVain(): Error {
    this.#figures.refused++
    return this.#limits.reason() ?? busy()
  }
}
