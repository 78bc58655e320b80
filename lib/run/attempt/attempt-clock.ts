// The clock of one attempt. It stands while the attempt waits for another system to settle, or for a limit: as long as one
// of those who stopped it waits.

import { formatDuration } from '../../duration.ts'
import { Limit } from '../../lived-time.ts'

export class AttemptClock {
  readonly #controller: AbortController
  readonly #ms: number
  readonly #stopped: Set<unknown>
  #left: number
  /** Null while the clock stands, and where nothing limits the attempt. */
  #limit: Limit | null = null

  /** Aborts `controller` when the attempt takes longer than `ms`; undefined means no limit. */
  constructor(controller: AbortController, ms: number | undefined, stopped: Iterable<unknown> = []) {
    this.#controller = controller
    this.#ms = ms ?? Number.POSITIVE_INFINITY
    this.#left = this.#ms
    this.#stopped = new Set(stopped)
    this.#go()
  }

  stop(by: unknown): void {
    this.#stopped.add(by)
    if (this.#limit === null) return
    this.#left = this.#limit.left
    this.#limit.end()
    this.#limit = null
  }

  /** Has no effect for one who has not stopped it. */
  continue(by: unknown): void {
    if (this.#stopped.delete(by)) this.#go()
  }

  /** The clock that takes its place, with `ms` from now, and stands as this one does. */
  replace(ms: number): AttemptClock {
    const next = new AttemptClock(this.#controller, ms, this.#stopped)
    this.stop(next)
    return next
  }

  #go(): void {
    if (this.#left === Number.POSITIVE_INFINITY || this.#stopped.size > 0) return
    this.#limit = new Limit(this.#left, () => {
      const message = `the attempt took longer than ${formatDuration(this.#ms)}`
      this.#controller.abort(new DOMException(message, 'TimeoutError'))
    })
  }
}
