// The single timer for all clocks. It sleeps until something is due according to the rows, reads the rows, and queues
// the resulting units. It keeps no state that a restart or a rollback could invalidate.

import type { Log } from '../../log/log.ts'
import { dueUnits, type Machine, nextDue, textOf } from '../steps/steps.ts'
import type { Journal } from '../store/store.ts'

/** The longest sleep, so that a change of the system clock is noticed. */
const LONGEST_SLEEP_MS = 1_000

export class DueTimer {
  readonly #machine: Machine
  readonly #journal: Journal
  readonly #log: Log
  #timer: Timer | undefined
  #at = Number.POSITIVE_INFINITY
  #asking = false
  #stopped = false

  constructor(machine: Machine, journal: Journal, log: Log) {
    this.#machine = machine
    this.#journal = journal
    this.#log = log
  }

  /** Makes the timer check the rows no later than `at`. */
  wakeAt(at: number): void {
    if (at >= this.#at || this.#stopped) return
    this.#at = at
    clearTimeout(this.#timer)
    const wait = Math.min(Math.max(0, at - this.#now()), LONGEST_SLEEP_MS)
    this.#timer = setTimeout(() => void this.#ring(), wait)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #ring(): Promise<void> {
    this.#at = Number.POSITIVE_INFINITY
    if (this.#stopped || this.#asking) return
    this.#asking = true
    try {
      const now = this.#now()
      if (!this.#journal.stalled) {
        for (const units of dueUnits(this.#machine, now)) {
          await Promise.all(units.map(unit => this.#journal.write(unit).catch(() => {})))
          if (this.#stopped) return
        }
      }
      // If the clock was set back in the meantime, nothing may be skipped.
      const next = nextDue(this.#machine, Math.min(now, this.#now()))
      if (next !== null) this.wakeAt(next)
      else if (this.#journal.stalled) this.wakeAt(now + LONGEST_SLEEP_MS)
    } catch (error) {
      this.#log.error('what is due could not be read', { error: textOf(error) })
      this.wakeAt(this.#now() + LONGEST_SLEEP_MS)
    } finally {
      this.#asking = false
    }
  }

  #now(): number {
    return this.#machine.world.now()
  }
}
