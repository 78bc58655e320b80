// What is to happen at a time. A time further off than a timer reaches is set again when the timer is over.

import { formatDuration } from '../duration.ts'

const LONGEST_TIMER_MS = 2 ** 31 - 1

export class Timers {
  readonly #now: () => number
  readonly #timers = new Set<Timer>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Calls `then` at `at` (epoch milliseconds) or soon after. */
  at(at: number, then: () => void): void {
    const wait = Math.max(0, at - this.#now())
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer)
        if (wait > LONGEST_TIMER_MS) this.at(at, then)
        else then()
      },
      Math.min(wait, LONGEST_TIMER_MS),
    )
    this.#timers.add(timer)
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }
}

/** Aborts `controller` when an attempt takes longer than `ms`; undefined is forever. Gives what calls it off. */
export function limit(controller: AbortController, ms: number | undefined): () => void {
  if (ms === undefined) return () => {}
  const over = () =>
    controller.abort(new DOMException(`the attempt took longer than ${formatDuration(ms)}`, 'TimeoutError'))
  const timer = setTimeout(over, Math.min(ms, LONGEST_TIMER_MS))
  return () => clearTimeout(timer)
}
