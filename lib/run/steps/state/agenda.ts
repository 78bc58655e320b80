// The runs that need a step, by tree. A fact schedules a step for each run that it concerns. The steps are taken later,
// so that a tree of any size is processed in small pieces.

import type { LiveRun } from '../../core/core.ts'

/**
 * Maximum number of steps of a tree in one unit. Further steps are left to later units, so that other trees get their
 * turn.
 */
const STEPS_OF_A_UNIT = 32
/**
 * How long a unit takes further steps and evaluates further expressions. One expression may take 100 ms on a slow
 * machine, so a unit without this limit could hold the event loop for as long as a team has expressions.
 */
const UNIT_MS = 10

export class Agenda {
  readonly #steps = new Map<string, Set<LiveRun>>()
  /**
   * Trees whose last unit threw. The next unit takes all of their steps first, so that it finds the tree in the same
   * condition, and throws again if the unit or one of these steps throws.
   */
  readonly #thrown = new Set<string>()
  #until = Number.POSITIVE_INFINITY
  #isStarted = false

  /** Called before a unit of a tree. */
  startUnit(root: string | null): void {
    const isRepeated = root !== null && this.#thrown.has(root)
    this.#until = isRepeated ? Number.POSITIVE_INFINITY : performance.now() + UNIT_MS
    this.#isStarted = false
  }

  /**
   * Whether the unit may take another step or evaluate another expression; a later unit does what is left. The first
   * answer in a unit is always yes, so that a tree gets on however slow the machine is.
   */
  hasTime(): boolean {
    if (this.#isStarted) return performance.now() < this.#until
    this.#isStarted = true
    return true
  }

  /** Schedules a step of a run. */
  add(live: LiveRun): void {
    const steps = this.#steps.get(live.root)
    if (steps) steps.add(live)
    else this.#steps.set(live.root, new Set<LiveRun>().add(live))
  }

  get isEmpty(): boolean {
    return this.#steps.size === 0
  }

  /** The tree whose turn it is; null when no step is scheduled. */
  get first(): string | null {
    for (const root of this.#steps.keys()) return root
    return null
  }

  /**
   * Takes the steps of a tree, as many as fit into one unit, including steps that are scheduled on the way. `after` is
   * called when no step is left, or there is no time for another one. It may schedule more.
   */
  takeSteps(root: string, step: (live: LiveRun) => void, after: () => void): void {
    const steps = this.#steps.get(root)
    if (!steps) return
    let left = this.#thrown.has(root) ? Number.POSITIVE_INFINITY : STEPS_OF_A_UNIT
    for (const live of steps) {
      steps.delete(live)
      step(live)
      const isLast = --left === 0 || !this.hasTime()
      if (isLast || steps.size === 0) after()
      if (isLast) break
    }
    // The rest goes behind the other trees that wait for a unit.
    this.#steps.delete(root)
    if (steps.size > 0) this.#steps.set(root, steps)
  }

  /** Removes the steps of a tree that leaves memory. */
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

  /** Called when a unit of the tree was applied, or when there will be none. */
  forgive(root: string): void {
    this.#thrown.delete(root)
  }
}
