// What a command that follows a run does while the hub is away: it says so once, waits, and goes on.

import { CadreError } from '../../../error.ts'
import { pause } from '../../../wait.ts'

const RETRY_MS = 1_000
/** A hub that is away for longer is given up. */
const PATIENCE_MS = 300_000

export class HubAbsence {
  readonly #notify: (line: string) => void
  #since: number | null = null

  /** `notify` gets what people should know meanwhile. */
  constructor(notify: (line: string) => void) {
    this.#notify = notify
  }

  /** Waits a moment if `error` says that the hub is away. Throws it otherwise, and when that takes too long. */
  async bear(error: unknown, signal?: AbortSignal): Promise<void> {
    const isAway = error instanceof CadreError && error.code === 'unavailable'
    if (signal?.aborted || !isAway || performance.now() - (this.#since ?? performance.now()) > PATIENCE_MS) throw error
    if (this.#since === null) this.#notify(`${error.message}; trying again`)
    this.#since ??= performance.now()
    await pause(RETRY_MS, signal)
  }

  /** The hub has answered. */
  end(): void {
    if (this.#since !== null) this.#notify('the hub is back')
    this.#since = null
  }

  /** Repeats `work` until the hub answers. */
  async outlast<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await work()
        this.end()
        return result
      } catch (error) {
        await this.bear(error)
      }
    }
  }
}
