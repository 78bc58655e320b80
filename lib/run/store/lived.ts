// The fact `lived`: how many milliseconds this home was at work, over all processes. Everything of runs is due in this
// time. It goes on from Date.now() in a new home, and in one that had its due times in epoch milliseconds.

import { livedMs } from '../../lived-time.ts'
import type { Facts } from './bundles.ts'

const LIVED = 'lived'
/** Commits that happen anyway write it this often. */
const SOON_MS = 1_000

export class Lived {
  readonly #facts: Facts
  readonly #ofProcess: () => number
  /** What had been lived when this process had lived nothing. */
  readonly #before: number
  #kept: number

  constructor(facts: Facts, ofProcess: () => number = livedMs) {
    this.#facts = facts
    this.#ofProcess = ofProcess
    const kept = livedBefore(facts)
    this.#before = (kept ?? Date.now()) - ofProcess()
    this.#kept = kept ?? Number.NEGATIVE_INFINITY
  }

  now(): number {
    return Math.floor(this.#before + this.#ofProcess())
  }

  /** Milliseconds that a kill would lose. What is due would be due as much later. */
  get unkept(): number {
    return this.now() - this.#kept
  }

  /** Called inside a change of the database. */
  keep(): void {
    this.#kept = this.now()
    this.#facts.set(LIVED, String(this.#kept))
  }

  /** Called inside a change that happens anyway. */
  keepSoon(): void {
    if (this.unkept >= SOON_MS) this.keep()
  }
}

/** What a home has lived, as its last process left it; null before a process has kept it. */
function livedBefore(facts: Facts): number | null {
  const kept = Number(facts.get(LIVED) ?? Number.NaN)
  return Number.isFinite(kept) ? kept : null
}
