// Lets other work have its turn on the event loop while long work runs.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long all work that takes turns may occupy the event loop before other calls get theirs. */
const TURN_MS = 10

/** When the work of the present turn is over, in `performance.now()` time; 0 if it has not begun. */
let ends = 0

/** Whether the work of the present turn is over. It begins with the first question. */
function isOver(): boolean {
  const now = performance.now()
  if (ends !== 0) return now > ends
  ends = now + TURN_MS
  setImmediate(() => {
    ends = 0
  })
  return false
}

/** To be awaited between the steps of long work. It ends the turn when the time is over that all such work shares. */
export function endTurn(): Promise<void> | undefined {
  return isOver() ? nextTurn() : undefined
}

/**
 * The amount of work that all callers together may do in one turn of the event loop. Callers with more work wait in line
 * for the next turns.
 */
export class TurnBudget {
  readonly #amount: number
  readonly #pauseMs: number
  /** Less than 0 after a piece of work that was larger than what was left; the next turns have less then. */
  #left: number
  #isArmed = false
  readonly #waiting: { work: number; go: () => void }[] = []

  /** `pauseMs`: how long all callers wait after the amount was used up, which also limits the rate. */
  constructor(amount: number, pauseMs = 0) {
    this.#amount = amount
    this.#pauseMs = pauseMs
    this.#left = amount
  }

  /** To be awaited before a piece of work is done. */
  take(work: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#left > 0 && !isOver()) return void this.#grant(work)
    this.#renew()
    return new Promise(go => this.#waiting.push({ work, go }))
  }

  #grant(work: number): void {
    this.#left -= work
    this.#renew()
  }

  #renew(): void {
    if (this.#isArmed) return
    this.#isArmed = true
    const next = () => {
      this.#isArmed = false
      this.#left = Math.min(this.#amount, this.#left + this.#amount)
      while (this.#waiting.length > 0 && this.#left > 0) {
        const { work, go } = this.#waiting.shift()!
        this.#grant(work)
        go()
      }
      if (this.#waiting.length > 0) this.#renew()
    }
    if (this.#pauseMs > 0) setTimeout(next, this.#pauseMs)
    else setImmediate(next)
  }
}
