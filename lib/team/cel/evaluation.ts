// One evaluation in progress: what it may read, and how much work it has left. The expressions of one template share
// it.

import type { Json } from '../../json.ts'
import { Work } from '../../schema/work-budget.ts'
import type { Scope } from '../model/model.ts'
import { type CelValue, toCel } from './values.ts'

export class Evaluation {
  readonly work = new Work()
  readonly scope: Scope
  /** Phases that were named but did not complete. Values that are missing in them are null. */
  readonly incomplete = new Set<string>()
  readonly #converted = new WeakMap<object, CelValue>()

  constructor(scope: Scope) {
    this.scope = scope
  }

  /** Converts a value. An object that several expressions of a template name is converted once. */
  toCel(value: Json): CelValue {
    if (typeof value !== 'object' || value === null) return toCel(value, this.work)
    const known = this.#converted.get(value) ?? toCel(value, this.work)
    this.#converted.set(value, known)
    return known
  }
}

let current: Evaluation | null = null

/** Runs `work` with `evaluation` as the current one. It is synchronous, and no evaluation begins inside another. */
export function evaluateIn<T>(evaluation: Evaluation, work: () => T): T {
  current = evaluation
  try {
    return work()
  } finally {
    current = null
  }
}

export function currentEvaluation(): Evaluation {
  if (!current) throw new Error('no expression is being evaluated')
  return current
}
