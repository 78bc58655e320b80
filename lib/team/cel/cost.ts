// Bounds the work of one evaluation: each step costs one, and what a step builds costs its length.
// cel-js limits what is written, not what nested loops or doubled lists make of it.

import type { ASTNode } from '@marcbachmann/cel-js'

const MAX_COST = 2_000_000

export class Budget {
  #left = MAX_COST

  /** A new evaluation begins. */
  refill(): void {
    this.#left = MAX_COST
  }

  spend(amount: number, refusal = 'this takes too many steps: narrow what it loops over'): void {
    this.#left -= amount
    if (this.#left < 0) throw new Error(refusal)
  }
}

type Evaluate = (this: ASTNode, evaluator: unknown, node: ASTNode, context: unknown) => unknown

/**
 * Counts the evaluation of `node`. cel-js runs a node through its `evaluate` and puts a faster function in its place at the
 * first call, hence the accessor.
 */
export function meter(node: ASTNode, budget: Budget): void {
  let inner = (node as unknown as { evaluate: Evaluate }).evaluate
  const builds = node.op === '+' || node.op === 'call' || node.op === 'rcall'
  const counted: Evaluate = function (evaluator, ast, context) {
    budget.spend(1)
    const value = inner.call(this, evaluator, ast, context)
    if (builds && (typeof value === 'string' || Array.isArray(value))) budget.spend(value.length)
    return value
  }
  Object.defineProperty(node, 'evaluate', {
    get: () => counted,
    set: (faster: Evaluate) => {
      inner = faster
    },
  })
}
