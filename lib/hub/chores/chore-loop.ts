// Runs one chore: when it is due, step by step, each with a deadline. At most one step of it is under way: after one that
// missed its deadline, the next run waits for its end. It knows no other chore, so that none waits for one that hangs or has
// very much to do.

import { backoff } from '../../backoff.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { startPause } from '../../wait.ts'
import type { ChoreOutcome, Steps } from '../core/chore.ts'

export interface Chore {
  name: string
  everyMs: number
  /** The message of the log when it fails. */
  failure: string
  /** Whether each hub does it, because it is about the hub itself. One hub at a time does the others. */
  isOfEachHub?: true
  /** How long a step may take; the default is `STEP_MS`. */
  stepMs?: number
}

export interface ChoreLoopParts {
  chore: Chore
  run: () => Steps
  /** Whether this hub does the chore now. */
  isMine: () => boolean
  now: () => number
  /** Is told what came of each run. */
  note: (outcome: ChoreOutcome) => void
  log: Pick<Log, 'warn'>
}

/** A statement of a chore may take 30 s on PostgreSQL. */
const STEP_MS = 40_000
/** Between two steps others have as much time as the last step took, within these limits. */
const LEAST_REST_MS = 2
const MOST_REST_MS = 1_000
/** After a failure, then after twice as long, up to the interval of the chore. */
const RETRY_MS = 5_000
/** How long a stop waits for the step under way. What it does in its transaction is done or not. */
const STOP_MS = 2_000

export class ChoreLoop {
  readonly #parts: ChoreLoopParts
  readonly #stopping = new AbortController()
  #pause: ReturnType<typeof startPause> | null = null
  #isWoken = false
  #failures = 0
  #lastErrorAt: number | null = null
  /** Resolves when nothing of the last run goes on any more, which may be later than its deadline. */
  #ended: Promise<unknown> = Promise.resolve()
  readonly #done: Promise<void>

  constructor(parts: ChoreLoopParts) {
    this.#parts = parts
    this.#done = this.#loop()
  }

  /** Does the chore now, or once more after the run under way. */
  wake(): void {
    this.#isWoken = true
    this.#pause?.end()
  }

  /** Ends after the step under way, but does not wait for one that hangs. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const patience = startPause(STOP_MS)
    await Promise.race([this.#done, patience.over])
    patience.end()
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      this.#isWoken = false
      const restMs = this.#parts.isMine() ? await this.#runNow() : this.#parts.chore.everyMs
      this.#pause = startPause(this.#isWoken ? 0 : restMs, signal)
      await this.#pause.over
      await this.#ended
    }
  }

  /** Returns how long to wait then. */
  async #runNow(): Promise<number> {
    const { chore, now, note, log } = this.#parts
    const began = performance.now()
    let last_error: string | null = null
    try {
      await this.#steps()
      this.#failures = 0
    } catch (error) {
      last_error = messageOf(error).split('\n', 1)[0]!
      this.#lastErrorAt = now()
      log.warn(chore.failure, { chore: chore.name, error: last_error })
    }
    if (this.#stopping.signal.aborted) return 0
    const last_run_ms = Math.round(performance.now() - began)
    note({ last_run_at: now(), last_run_ms, last_error, last_error_at: this.#lastErrorAt })
    // What is due once an hour is tried again soon: a store of files may have been away for a moment.
    if (last_error !== null) return backoff(this.#failures++, { firstMs: RETRY_MS, mostMs: chore.everyMs })
    return chore.everyMs
  }

  async #steps(): Promise<void> {
    const { run, isMine } = this.#parts
    const steps = run()
    if (steps instanceof Promise) {
      this.#ended = Promise.allSettled([steps])
      return this.#inTime(steps)
    }
    try {
      while (!this.#stopping.signal.aborted && isMine()) {
        const began = performance.now()
        if ((await this.#inTime(steps.next())).done) return
        const tookMs = performance.now() - began
        await startPause(Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, tookMs)), this.#stopping.signal).over
      }
    } finally {
      // Settles after a step that goes on, so only the next run waits for it.
      this.#ended = Promise.allSettled([steps.return()])
    }
  }

  /** Throws at the deadline. The step goes on then: nothing can end it. */
  async #inTime<T>(step: Promise<T>): Promise<T> {
    const { stepMs = STEP_MS } = this.#parts.chore
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      late.reject(new CadreError('unavailable', `a step did not end within ${stepMs / 1_000} s`))
    }, stepMs)
    try {
      return await Promise.race([step, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}
