// An expression that an agent evaluates for each item of a list, such as `item.late`. It names the item, its index and
// the inputs that the entry passes, and nothing of the run.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { Evaluation } from './evaluation.ts'
import { EvaluationMistake, type Parsed, parseExpression } from './expression.ts'
import type { Names } from './survey.ts'

const ONLY = {
  roots: ['item', 'index', 'inputs'],
  why: 'only `item`, `index` and `inputs` can be used here: pass other values as `inputs` of the entry',
}

/** The expression with its mistakes. `inputs` are the names that the entry passes. */
export function parseForItems(text: string, inputs: readonly string[]): Parsed {
  const names: Names = { phases: new Set(), inputs: new Set(inputs), item: true, only: ONLY }
  return parseExpression(text, names)
}

/** Reads an expression. Both throw a CadreError `invalid_request`, which names the expression, and the item if there is one. */
export function itemExpression(text: string, inputs: JsonObject): (item: Json, index: number) => Json {
  const { mistakes, evaluate } = parseForItems(text, Object.keys(inputs))
  const refuse = (where: string, { message }: { message: string }, cause?: unknown) =>
    new CadreError('invalid_request', `${text}: ${where}${message}`, { cause })
  if (mistakes.length > 0) throw refuse('', mistakes[0]!)
  const run = { id: '', name: null, started_at: null, environment: null }
  const phase = () => {
    throw new Error('an item knows no phases')
  }
  return (item, index) => {
    try {
      return evaluate(new Evaluation({ inputs, run, phase, item, index }))
    } catch (error) {
      throw error instanceof EvaluationMistake ? refuse(`item ${index}: `, error, error) : error
    }
  }
}
