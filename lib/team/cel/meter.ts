// Makes the nodes of a parsed expression pay for their work before they do it. cel-js limits what is written, not what
// nested loops, doubled lists or long texts make of it.

import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { costOf } from './calls.ts'
import { currentEvaluation } from './evaluation.ts'
import { matches } from './regex.ts'
import { equals } from './values.ts'
import { Refusal } from './work.ts'

type Evaluate = (this: ASTNode, evaluator: Evaluator, node: ASTNode, context: unknown) => unknown
type Handle = (...given: unknown[]) => unknown

interface Evaluator {
  run(node: ASTNode, context: unknown): unknown
  tryEval(node: ASTNode, context: unknown): unknown
}

/** What cel-js keeps in a node beside what it declares. */
interface Inner {
  evaluate: Evaluate
  handle?: Handle
  meta: { alternate?: ASTNode; macro?: object }
  check(checker: Checker, node: ASTNode, context: unknown): unknown
}

type MapNode = Extract<ASTNode, { op: 'map' }>

interface Checker {
  check(node: ASTNode, context: unknown): { kind: string }
}

const KEYS = "a map's key is a text, a whole number or a bool"

/**
 * To be called for a map that is written out, before its types are checked. Only simple values are keys, as CEL has it: a map as a key would
 * make the names of types grow without bound, and the text that JavaScript makes of it.
 */
export function checkKeys(node: MapNode): void {
  const inner = node as unknown as Inner
  const check = inner.check.bind(node)
  inner.check = (checker, ast, context) => {
    for (const [key] of node.args) {
      if (['list', 'map', 'optional'].includes(checker.check(key, context).kind)) throw new Error(KEYS)
    }
    return check(checker, ast, context)
  }
}

/** To be called once the types of `node` are checked: that is when cel-js chooses what it does. */
export function meter(node: ASTNode, isKey: boolean): void {
  const inner = node as unknown as Inner
  countEvaluations(inner, isKey)
  const { alternate, macro } = inner.meta
  if (alternate) chargeLoop(alternate as unknown as Inner)
  else if (!macro && inner.handle) inner.handle = charged(node, inner.handle)
}

/** cel-js puts a faster function in the place of `evaluate` at its first call, hence the accessor. */
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

/** The type of a key may be known at run time only. */
function keyOf(value: unknown): unknown {
  if (typeof value !== 'object' || typeof value?.valueOf() === 'bigint') return value
  throw new Error(KEYS)
}

/** Looping over a map copies its keys, even when the loop ends at the first. */
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
 * Lets `||`, `&&`, `all` and `exists` end when the work is refused; after any other error they go on, as CEL asks for.
 * To be called once for an environment: all of its expressions share one evaluator.
 */
export function stopAtRefusal(environment: Environment): void {
  const probe = environment.parse('true')
  ;(probe.ast as unknown as Inner).evaluate = evaluator => {
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
