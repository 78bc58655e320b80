// Whether a file is at rest: it was the same for a while, and is not what was seen of it before. Kept in memory, so that
// after a restart each file has to rest once more. Pure: the clock comes by parameter and only runs forward.

import type { Stat } from './scan.ts'

/** What was seen of a file. Null: it is not there. */
type State = Stat | null

export class Settling {
  readonly #waits = new Map<string, { state: State; since: number }>()
  readonly #ms: number

  /** `ms`: for how long a file rests. */
  constructor(ms: number) {
    this.#ms = ms
  }

  /** Files that are on their way. */
  get paths(): string[] {
    return [...this.#waits.keys()]
  }

  /** When the next file may have rested for long enough; null when none is on its way. */
  get nextAt(): number | null {
    let first: number | null = null
    for (const { since } of this.#waits.values()) if (first === null || since < first) first = since
    return first === null ? null : first + this.#ms
  }

  /**
   * Takes in what a file was at some moment of a look. True when it has rested, and differs from what was `seen`. Between
   * two looks are at least the milliseconds from the end of the first to the beginning of the second.
   */
  rests(path: string, state: State, seen: State, { began, ended }: { began: number; ended: number }): boolean {
    if (state === seen) {
      this.#waits.delete(path)
      return false
    }
    const known = this.#waits.get(path)
    if (known?.state === state) return began - known.since >= this.#ms
    this.#waits.set(path, { state, since: ended })
    return this.#ms === 0
  }

  forget(path: string): void {
    this.#waits.delete(path)
  }
}
