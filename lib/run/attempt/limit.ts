// The clock of one attempt of a leaf phase. It is measured by a timer of the process, not by the system clock, and can be
// stopped while the attempt waits for what counts in no time of its phase.

import { formatDuration } from '../../duration.ts'
import { LONGEST_TIMER_MS } from '../../wait.ts'

export class Limit {
  readonly #controller: AbortController
  readonly #ms: number
  #left: number
  #since = 0
  #timer: Timer | undefined
  #stopped = false

  /** Aborts `controller` when an attempt takes longer than `ms`; undefined means no limit. */
  constructor(controller: AbortController, ms: number | undefined) {
    this.#controller = controller
    this.#ms = ms ?? Number.POSITIVE_INFINITY
    this.#left = this.#ms
    this.#start()
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#left -= performance.now() - this.#since
  }

  goOn(): void {
    if (!this.#stopped) return
    this.#stopped = false
    this.#start()
  }

  #start(): void {
    this.#since = performance.now()
    if (this.#left === Number.POSITIVE_INFINITY) return
    const over = () =>
      this.#controller.abort(
        new DOMException(`the attempt took longer than ${formatDuration(this.#ms)}`, 'TimeoutError'),
      )
    this.#timer = setTimeout(over, Math.min(Math.max(0, this.#left), LONGEST_TIMER_MS))
  }
}
