// Functions that evaluate an argument themselves: with a variable (`list.sortBy(x, x.age)`, `optional.optMap(x, x + 1)`,
// https://github.com/google/cel-go/blob/master/ext/README.md), or only where it is needed (`or(value, other)`).

import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { Refusal } from '../../schema/work-budget.ts'
import { currentEvaluation } from './evaluation.ts'
import { ABSENCE } from './instead.ts'
import { sortedBy } from './order.ts'
import { phasesIn } from './path.ts'
import { isOptional, type Optional } from './values.ts'

/** An object that cel-js passes to macros but does not declare. */
interface Checker {
  check(node: ASTNode, context: Context): Type
  getType(name: string): Type
  dynType: Type
  registry: object
}

interface Type {
  kind: string
  name: string
  valueType?: Type
  /** The one type that both can have, or null. */
  unify(registry: object, other: Type): Type | null
}

interface Context {
  forkWithVariable(name: string, type: Type): Context
  reuse(parent: Context): Context
  setIterValue(value: unknown, evaluator: Evaluator): Context
}

interface Evaluator {
  run(node: ASTNode, context: Context): unknown
}

interface Parts {
  receiver: ASTNode
  args: ASTNode[]
}

/** Evaluates the macro's expression with `value` as its variable. */
type Body = (value: unknown) => unknown

function macro(name: string, kind: 'list' | 'optional', apply: (value: unknown, body: Body) => unknown) {
  const article = kind === 'list' ? 'list' : 'optional value'
  return ({ receiver, args }: Parts) => {
    const [variable, expression] = args as [ASTNode, ASTNode]
    let inner: Context
    return {
      async: false,
      typeCheck(checker: Checker, _: unknown, context: Context): Type {
        const type = checker.check(receiver, context)
        if (type.kind !== kind && type.kind !== 'dyn') throw new Error(`\`${name}\` must be called on a ${article}`)
        if (variable.op !== 'id') throw new Error(`\`${name}\` must begin with the name of a variable: ${name}(x, …)`)
        inner = context.forkWithVariable(variable.args, type.valueType ?? checker.dynType)
        checker.check(expression, inner)
        return kind === 'list' ? type : checker.getType('optional')
      },
      evaluate(evaluator: Evaluator, _: unknown, context: Context): unknown {
        const value = evaluator.run(receiver, context)
        const bound = inner.reuse(context)
        return apply(value, each => evaluator.run(expression, bound.setIterValue(each, evaluator)))
      },
    }
  }
}

/** `or(value, other)`: `other` where the value is null, or not there, or of a phase that did not complete. */
function or({ args }: Parts) {
  const [value, other] = args as [ASTNode, ASTNode]
  const phases = [...phasesIn(value)]
  const isAbsence = (error: unknown) =>
    ABSENCE.includes((error as { code?: string }).code!) ||
    phases.some(name => currentEvaluation().incomplete.has(name))
  return {
    async: false,
    typeCheck(checker: Checker, _: unknown, context: Context): Type {
      const given = checker.check(value, context)
      const type = given.kind === 'optional' ? given.valueType! : given
      const instead = checker.check(other, context)
      return type.name === 'null' ? instead : (type.unify(checker.registry, instead) ?? checker.dynType)
    },
    evaluate(evaluator: Evaluator, _: unknown, context: Context): unknown {
      let given: unknown = null
      try {
        given = evaluator.run(value, context)
        if (isOptional(given)) given = given.hasValue() ? given.value() : null
      } catch (error) {
        if (error instanceof Refusal || !isAbsence(error)) throw error
        currentEvaluation().work.spendOnError()
      }
      return given === null ? evaluator.run(other, context) : given
    },
  }
}

export function registerMacros(cel: Environment): void {
  const sortBy = macro('sortBy', 'list', (list, key) => {
    if (!Array.isArray(list)) throw new Error('`sortBy` must be called on a list')
    return sortedBy(list, list.map(key))
  })
  const optMap = macro('optMap', 'optional', (optional, body) => {
    const value = present(optional)
    return value === null ? optional : constructorOf(optional).of(body(value.value()))
  })
  const optFlatMap = macro('optFlatMap', 'optional', (optional, body) => {
    const value = present(optional)
    if (value === null) return optional
    const mapped = body(value.value())
    if (!isOptional(mapped)) throw new Error('the expression of `optFlatMap` must give an optional value')
    return mapped
  })
  const register = (signature: string, handler: ReturnType<typeof macro>) =>
    cel.registerFunction(signature, handler, { async: false })
  register('list.sortBy(ast, ast): list', sortBy)
  register('optional.optMap(ast, ast): optional', optMap)
  register('optional.optFlatMap(ast, ast): optional', optFlatMap)
  cel.registerFunction('or(ast, ast): dyn', or, { async: false })
}

/** The optional value, or null when it is empty. */
function present(value: unknown): Optional | null {
  if (!isOptional(value)) throw new Error('this function must be called on an optional value, such as `a.?b`')
  return value.hasValue() ? value : null
}

function constructorOf(optional: unknown): { of(value: unknown): Optional } {
  return (optional as { constructor: { of(value: unknown): Optional } }).constructor
}
