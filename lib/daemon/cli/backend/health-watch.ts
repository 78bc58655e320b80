// Notices that the process which a call asks is stuck: stopped, or in a loop. The system accepts connections in its name,
// so only a reply shows that it lives. A call may take as long as it needs while the process answers `/health`.

import { limitSignal } from '../../../lived-time.ts'
import { pause } from '../../../wait.ts'

/** How long a call goes on before the process is asked whether it lives, and how often after that. */
const LOOK_MS = 4_000
/** `/health` reads nothing and waits for nothing, so even a busy process answers much sooner. */
const HEALTH_MS = 10_000

/** Dispose of it when the call has ended. */
export class HealthWatch implements Disposable {
  readonly #base: string
  readonly #ended = new AbortController()
  readonly #stuck = new AbortController()

  /** `base` is the address of the process. `stuckError` makes the error with which calls to a stuck process fail. */
  constructor(base: string, stuckError: (silentMs: number) => Error) {
    this.#base = base
    void this.#look(stuckError)
  }

  /** Fires with the error once the process is found stuck. */
  get signal(): AbortSignal {
    return this.#stuck.signal
  }

  [Symbol.dispose](): void {
    this.#ended.abort()
  }

  async #look(stuckError: (silentMs: number) => Error): Promise<void> {
    for (;;) {
      await pause(LOOK_MS, this.#ended.signal)
      if (this.#ended.signal.aborted) return
      if (await this.#isSilent()) return this.#stuck.abort(stuckError(HEALTH_MS))
    }
  }

  /** A connection that is refused or breaks is no silence: the process ends, and so does the call. */
  async #isSilent(): Promise<boolean> {
    using late = limitSignal(HEALTH_MS)
    const signal = AbortSignal.any([late.signal, this.#ended.signal])
    try {
      await (await fetch(`${this.#base}/health`, { signal, keepalive: false })).arrayBuffer()
      return false
    } catch {
      return late.signal.aborted && !this.#ended.signal.aborted
    }
  }
}
