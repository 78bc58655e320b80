// Charges the nodes of a parsed expression for their work before they do it. cel-js limits the size of the expression,
// but not the work of nested loops, growing lists or long texts. The fields of nodes that this file replaces are not
// public, and there is no public way; tests/team/work.test.ts fails when one of them has no effect any more.

import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { matches } from '../../schema/linear-regex.ts'
import { Refusal } from '../../schema/work-budget.ts'
import { costOf } from './calls.ts'
import { currentEvaluation } from './evaluation.ts'
import { equals } from './values.ts'

type Evaluate = (this: ASTNode, evaluator: Evaluator, node: ASTNode, context: unknown) => unknown
type Handle = (...given: unknown[]) => unknown

interface Evaluator {
  run(node: ASTNode, context: unknown): unknown
  tryEval(node: ASTNode, context: unknown): unknown
}

/** A node with internal fields that cel-js does not declare. */
type Inner = ASTNode & {
  evaluate: Evaluate
  handle?: Handle
  meta: { alternate?: Inner; macro?: object }
  check(checker: Checker, node: ASTNode, context: unknown): unknown
}

type MapNode = Extract<ASTNode, { op: 'map' }>

interface Checker {
  check(node: ASTNode, context: unknown): { kind: string }
}

const KEYS = "a map's key must be a text, a whole number or a bool"

/**
 * Checks the keys of a map literal. It must be called before types are checked. As in CEL, only simple values can be
 * keys: with maps as keys, the names of types and the text that JavaScript makes of a key would grow without limit.
 */
export function checkKeys(node: MapNode): void {
  const inner = node as Inner
  const check = inner.check.bind(node)
  inner.check = (checker, ast, context) => {
    for (const [key] of node.args) {
      if (['list', 'map', 'optional'].includes(checker.check(key, context).kind)) throw new Error(KEYS)
    }
    return check(checker, ast, context)
  }
}

/** Must be called after the types of `node` were checked, because cel-js chooses its functions then. */
export function meter(node: ASTNode, isKey: boolean): void {
  const inner = node as Inner
  countEvaluations(inner, isKey)
  const { alternate, macro } = inner.meta
  if (alternate) chargeLoop(alternate)
  else if (!macro && inner.handle) inner.handle = charged(node, inner.handle)
}

/** An accessor is needed because cel-js replaces `evaluate` with a faster function at the first call. */
function countEvaluations(inner: Inner, isKey: boolean): void {
  let { evaluate } = inner
  const counted: Evaluate = function (evaluator, node, context) {
    currentEvaluation().work.spend(1)
    const value = evaluate.call(this, evaluator, node, context)
    return isKey ? keyOf(value) : value
  }
  Object.defineProperty(inner, 'evaluate', {
    get: () => counted,
    set: (faster: Evaluate) => {
      evaluate = faster
    },
  })
}

/** Checks a key at run time, because its type may not be known earlier. */
function keyOf(value: unknown): unknown {
  if (typeof value !== 'object' || typeof value?.valueOf() === 'bigint') return value
  throw new Error(KEYS)
}

/** A loop over a map copies all of its keys, even when it ends at the first one. */
function chargeLoop(loop: Inner): void {
  const { handle } = loop
  if (!handle) return
  loop.handle = (items, ...rest) => {
    if (!Array.isArray(items)) currentEvaluation().work.pass(items)
    return handle(items, ...rest)
  }
}

function charged(node: ASTNode, handle: Handle): Handle {
  switch (node.op) {
    case '==':
    case '!=':
      return (left, right, ...rest) => {
        const { work } = currentEvaluation()
        if (isContainer(left) && isContainer(right)) return equals(left, right, work) === (node.op === '==')
        if (typeof left === 'string' && typeof right === 'string') work.pass(left.length < right.length ? left : right)
        return handle(left, right, ...rest)
      }
    case 'in':
      return (value, list, ...rest) => {
        if (!Array.isArray(list)) return handle(value, list, ...rest)
        const { work } = currentEvaluation()
        return list.some(item => equals(value, item, work))
      }
    case '+':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return (left, right, ...rest) => {
        const { work } = currentEvaluation()
        work.pass(left)
        work.pass(right)
        return handle(left, right, ...rest)
      }
    case 'call':
    case 'rcall': {
      const [name] = node.args
      const cost = costOf(name)
      return (values, ...rest) => {
        const [text, pattern] = values as unknown[]
        if (name === 'matches' && typeof text === 'string' && typeof pattern === 'string') {
          return matches(text, pattern, currentEvaluation().work)
        }
        cost(values as unknown[], currentEvaluation().work)
        return handle(values, ...rest)
      }
    }
    default:
      return handle
  }
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/**
 * Makes `||`, `&&`, `all` and `exists` stop when the work is refused. After any other error they continue, as CEL
 * requires. It must be called once for each environment, because all of its expressions share one evaluator.
 */
export function stopAtRefusal(environment: Environment): void {
  const probe = environment.parse('true')
  ;(probe.ast as Inner).evaluate = evaluator => {
    evaluator.tryEval = (node, context) => {
      try {
        return evaluator.run(node, context)
      } catch (error) {
        if (error instanceof Refusal) throw error
        currentEvaluation().work.spendOnError()
        return error
      }
    }
    return true
  }
  probe()
}
