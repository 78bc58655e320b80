// What SIGINT and SIGTERM do to a command that runs something. The first SIGINT cancels the run, and the second also
// cancels its cleanup phases. SIGTERM, a third SIGINT, or a cancel without effect makes the command leave. It has left
// within ten seconds, whatever hangs.

import { EXIT } from './exit.ts'

/** What a cancel did: `cleanup` names phases that still run because they always do. */
type Cancel = () => Promise<{ cleanup: string[] }>

/** On a full disk no cancel can be stored. The command waits this long for it. */
const ANSWER_MS = 3_000
/** Every process of a run has ended 5 s after it was cancelled. */
const END_MS = 6_000
/** The command has left this long after the signal. */
const LEFT_MS = 9_500

export class Signals implements Disposable {
  readonly #cancel: Cancel
  readonly #leave = new AbortController()
  readonly #timers: Timer[] = []
  #interrupts = 0

  constructor(cancel: Cancel) {
    this.#cancel = cancel
    process.on('SIGINT', this.#interrupt)
    process.on('SIGTERM', this.leave)
  }

  /** Fires when the command has to end, and what runs in this process with it. */
  get leaving(): AbortSignal {
    return this.#leave.signal
  }

  get interrupted(): boolean {
    return this.#interrupts > 0
  }

  readonly leave = (): void => {
    this.#leave.abort()
    this.#after(LEFT_MS, () => process.exit(EXIT.interrupted))
  };

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#interrupt)
    process.off('SIGTERM', this.leave)
    for (const timer of this.#timers) clearTimeout(timer)
  }

  readonly #interrupt = (): void => {
    this.#interrupts++
    if (this.#interrupts > 3) process.exit(EXIT.interrupted)
    if (this.#interrupts === 3) return this.leave()
    const unanswered = this.#after(ANSWER_MS, this.leave)
    const last = this.#after(LEFT_MS, () => process.exit(EXIT.interrupted))
    this.#cancel().then(
      ({ cleanup }) => {
        clearTimeout(unanswered)
        if (cleanup.length === 0) return void this.#after(END_MS, this.leave)
        clearTimeout(last)
        process.stderr.write(`cancelling; cleanup phases still run (${cleanup.join(', ')}): Ctrl-C again stops them\n`)
      },
      // The run has already ended, or nobody is there to cancel it.
      this.leave,
    )
  }

  #after(ms: number, work: () => void): Timer {
    const timer = setTimeout(work, ms)
    this.#timers.push(timer)
    return timer
  }
}
