// The runs to look at again, by tree. A fact schedules a step for each run that it concerns; the steps are taken later,
// so that a tree of any size is worked through in small pieces.

import type { LiveRun } from '../core/core.ts'

/** Most steps of a tree in one unit. Further steps are left to later units, so that other trees get their turn. */
const STEPS_OF_A_UNIT = 32

export class Agenda {
  readonly #steps = new Map<string, Set<LiveRun>>()
  /**
   * Trees whose last unit threw: the next one takes all of their steps first, so that it finds the tree as the one before
   * did, and throws again if that or one of these steps does.
   */
  readonly #thrown = new Set<string>()

  /** Schedules a step of a run. */
  add(live: LiveRun): void {
    const steps = this.#steps.get(live.root)
    if (steps) steps.add(live)
    else this.#steps.set(live.root, new Set([live]))
  }

  get isEmpty(): boolean {
    return this.#steps.size === 0
  }

  /** The tree whose turn it is; null when no step is scheduled. */
  get first(): string | null {
    for (const root of this.#steps.keys()) return root
    return null
  }

  /** Takes the steps of a tree, as many as fit one unit. Steps that these schedule are among them. */
  takeSteps(root: string, step: (live: LiveRun) => void): void {
    const steps = this.#steps.get(root)
    if (!steps) return
    let left = this.#thrown.has(root) ? Number.POSITIVE_INFINITY : STEPS_OF_A_UNIT
    for (const live of steps) {
      steps.delete(live)
      step(live)
      if (--left === 0) break
    }
    // The rest goes behind the other trees that wait for a unit.
    this.#steps.delete(root)
    if (steps.size > 0) this.#steps.set(root, steps)
  }

  /** The tree leaves memory, and its steps with it. */
  drop(root: string): void {
    this.#steps.delete(root)
  }

  // Units that throw

  threw(root: string): void {
    this.#thrown.add(root)
  }

  hasThrown(root: string): boolean {
    return this.#thrown.has(root)
  }

  /** A unit of the tree was applied, or there will be none. */
  forgive(root: string): void {
    this.#thrown.delete(root)
  }
}
