// What SIGINT and SIGTERM do to a command that follows a run. On a terminal the first SIGINT asks: a second one within
// two seconds cancels the run, and otherwise the command goes on, or leaves when the run goes on without it. Elsewhere
// the first SIGINT cancels. The next SIGINT also cancels its cleanup phases. SIGTERM, one more SIGINT, or a cancel
// without effect makes the command leave. It has left within ten seconds, whatever hangs.

import { EXIT } from './exit.ts'

/** What a cancel did: `cleanup` names phases that still run because they always do. */
type Cancel = () => Promise<{ cleanup: string[] }>

export interface SignalOptions {
  cancel: Cancel
  /** Whether the run goes on when this process ends. */
  detaches: boolean
  /** Whether nobody can be asked: then the first SIGINT cancels, or with `leave` ends only this command. */
  unasked: 'cancel' | 'leave' | null
  notify(line: string): void
}

/** On a full disk no cancel can be stored. The command waits this long for it. */
const ANSWER_MS = 3_000
/** Every process of a run has ended 5 s after it was cancelled. */
const END_MS = 6_000
/** The command has left this long after the signal. */
const LEFT_MS = 9_500
/** How long a second Ctrl-C counts as the answer to the question of the first. */
const ASK_MS = 2_000

export class Signals implements Disposable {
  readonly #options: SignalOptions
  readonly #leave = new AbortController()
  readonly #timers: Timer[] = []
  #asked: Timer | null = null
  #interrupts = 0

  constructor(options: SignalOptions) {
    this.#options = options
    process.on('SIGINT', this.#interrupt)
    process.on('SIGTERM', this.leave)
  }

  /** Fires when the command has to end, and what runs in this process with it. */
  get leaving(): AbortSignal {
    return this.#leave.signal
  }

  /** Whether the run was cancelled by a signal. */
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
    const { unasked, detaches, notify, cancel } = this.#options
    if (this.#interrupts === 0) {
      if (unasked === 'leave') return this.leave()
      if (unasked === null && !this.#asked) {
        notify(
          detaches
            ? 'the run goes on without this command; Ctrl-C again cancels it'
            : 'Ctrl-C again cancels the run; it goes on otherwise',
        )
        this.#asked = this.#after(ASK_MS, () => {
          this.#asked = null
          if (detaches) this.leave()
        })
        return
      }
      if (this.#asked) clearTimeout(this.#asked)
      if (unasked === null) notify('cancelling')
    }
    this.#interrupts++
    if (this.#interrupts > 3) process.exit(EXIT.interrupted)
    if (this.#interrupts === 3) return this.leave()
    const unanswered = this.#after(ANSWER_MS, this.leave)
    const last = this.#after(LEFT_MS, () => process.exit(EXIT.interrupted))
    cancel().then(
      ({ cleanup }) => {
        clearTimeout(unanswered)
        if (cleanup.length === 0) return void this.#after(END_MS, this.leave)
        clearTimeout(last)
        notify(`cancelling; cleanup phases still run (${cleanup.join(', ')}): Ctrl-C again stops them`)
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
