// The single timer for everything that is due. It sleeps until something is due according to the rows, reads the rows,
// and queues the resulting units. It keeps no state that a restart or a rollback could invalidate. Times are lived time,
// which it also keeps from time to time, for a process that is killed.

import { Limit } from '../../lived-time.ts'
import type { Log } from '../../log/log.ts'
import { dueUnits, type Machine, nextDue, textOf } from '../steps/steps.ts'
import type { Journal, Lived, Unit } from '../store/store.ts'

/** How much lived time a kill may lose while something is due, and while nothing is. */
const KEEP_MS = 10_000
const KEEP_IDLE_MS = 5 * 60_000
/** How soon the rows are read again when something could not be recorded. */
const AGAIN_MS = 1_000

export class DueTimer {
  readonly #machine: Machine
  readonly #journal: Journal
  readonly #lived: Lived
  readonly #log: Log
  #sleep: Limit | undefined
  #at = Number.POSITIVE_INFINITY
  #asking = false
  #stopped = false

  constructor(machine: Machine, journal: Journal, lived: Lived, log: Log) {
    this.#machine = machine
    this.#journal = journal
    this.#lived = lived
    this.#log = log
  }

  /** Makes the timer check the rows no later than `at`. */
  wakeAt(at: number): void {
    if (at >= this.#at || this.#stopped) return
    this.#at = at
    this.#wakeAfter(Math.min(Math.max(0, at - this.#lived.now()), KEEP_MS))
  }

  stop(): void {
    this.#stopped = true
    this.#sleep?.end()
  }

  #wakeAfter(ms: number): Limit {
    this.#sleep?.end()
    this.#sleep = new Limit(ms, () => void this.#ring())
    return this.#sleep
  }

  async #ring(): Promise<void> {
    this.#at = Number.POSITIVE_INFINITY
    if (this.#stopped || this.#asking) return
    this.#asking = true
    let again = this.#journal.stalled !== null
    const write = (unit: Unit) =>
      this.#journal.write(unit).catch(() => {
        again = true
      })
    try {
      const now = this.#lived.now()
      if (!again) {
        for (const units of dueUnits(this.#machine, now)) {
          await Promise.all(units.map(write))
          if (this.#stopped) return
        }
      }
      const keepMs = nextDue(this.#machine, now) === null ? KEEP_IDLE_MS : KEEP_MS
      if (!again && this.#lived.unkept >= keepMs) await write({ root: null, apply: () => this.#lived.keep() })
      // Read last: a row that became due while the timer was busy has woken nobody.
      const next = nextDue(this.#machine, now)
      if (this.#at === Number.POSITIVE_INFINITY && !this.#stopped) this.#wakeAfter(KEEP_IDLE_MS).unref()
      if (next !== null) this.wakeAt(next)
      if (again) this.wakeAt(now + AGAIN_MS)
    } catch (error) {
      this.#log.error('what is due could not be read', { error: textOf(error) })
      this.wakeAt(this.#lived.now() + AGAIN_MS)
    } finally {
      this.#asking = false
    }
  }
}
