// One CEL expression: parsed, its names checked, evaluated. Data in, JSON out: no host object is within its reach,
// its work is bounded (cost.ts), and it loads nothing but the values that it names.
// CEL: https://github.com/google/cel-spec. Beyond it, int and double mix in arithmetic, since JSON does not tell them apart.

import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { messageOf } from '../../error.ts'
import { isObject, type Json } from '../../json.ts'
import { didYouMean } from '../../spelling.ts'
import type { Scope } from '../model.ts'
import { Budget, meter } from './cost.ts'
import { compilePattern, matchInLinearTime, patternOf } from './regex.ts'
import { type CelValue, fromCel, toCel } from './values.ts'

/** What an expression may name. */
export interface Names {
  phases: ReadonlySet<string>
  inputs: ReadonlySet<string>
  /** Whether `item` and `index` exist here. */
  item: boolean
}

export interface Mistake {
  /** Into the expression. */
  offset: number
  message: string
}

/** A phase or an input that an expression names; `*` for all inputs. */
export interface Use {
  kind: 'phase' | 'input'
  name: string
  offset: number
}

export interface Parsed {
  /** CEL's name of the type, `dyn` when it is known at run time only. */
  type: string
  uses: Use[]
  mistakes: Mistake[]
  /** Throws an EvaluationMistake. */
  evaluate(scope: Scope): Json
}

export class EvaluationMistake extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** The part of a value that is read: all of it, or these of its fields. */
type Read = 'all' | Map<string, Read>

const PHASE_FIELDS = ['state', 'reason', 'text', 'data', 'files']
const RUN_FIELDS = ['id', 'name']
const ROOTS = ['inputs', 'phases', 'item', 'index', 'run']
const MAX_LENGTH = 10_000
const LIMITS = { maxAstNodes: 1_000, maxDepth: 50, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 8 }

let environment: Environment | undefined

/** Made at first use: it costs more than most expressions. */
function cel(): Environment {
  if (environment) return environment
  const made = new Environment({ homogeneousAggregateLiterals: false, limits: LIMITS })
  for (const name of ['inputs', 'phases', 'run']) made.registerVariable(name, 'map')
  made.registerVariable('item', 'dyn').registerVariable('index', 'int')
  const mixed: Record<string, (a: number, b: number) => number> = {
    '+': (a, b) => a + b,
    '-': (a, b) => a - b,
    '*': (a, b) => a * b,
    '/': (a, b) => a / b,
  }
  for (const [sign, apply] of Object.entries(mixed)) {
    made.registerOperator(`int ${sign} double`, (a: bigint, b: number) => apply(Number(a), b))
    made.registerOperator(`double ${sign} int`, (a: number, b: bigint) => apply(a, Number(b)))
  }
  environment = made
  return made
}

export function parseExpression(text: string, names: Names): Parsed {
  const failed = (mistakes: Mistake[]): Parsed => ({ type: 'dyn', uses: [], mistakes, evaluate: unusable })
  if (text.trim() === '') return failed([{ offset: 0, message: 'an expression is expected here' }])
  if (text.length > MAX_LENGTH) {
    return failed([{ offset: 0, message: `an expression has at most ${MAX_LENGTH} characters` }])
  }
  const hyphens = hyphenated(text, names)
  if (hyphens.length > 0) return failed(hyphens)
  let program: ReturnType<Environment['parse']>
  try {
    program = cel().parse(text)
  } catch (error) {
    return failed([mistakeOf(error)])
  }
  const survey = new Survey(names)
  survey.visit(program.ast, [])
  const { uses, mistakes, reads } = survey
  if (mistakes.length > 0) return { ...failed(mistakes), uses }
  const check = program.check()
  if (!check.valid) return { ...failed([mistakeOf(check.error)]), uses }
  const budget = new Budget()
  for (const node of survey.nodes) {
    if (patternOf(node)) matchInLinearTime(node, budget)
    meter(node, budget)
  }
  return {
    type: check.type ?? 'dyn',
    uses,
    mistakes,
    evaluate(scope) {
      budget.refill()
      try {
        return fromCel(program(contextOf(reads, scope)))
      } catch (error) {
        const { message, offset } = mistakeOf(error)
        throw new EvaluationMistake(message, offset)
      }
    },
  }
}

function unusable(): never {
  throw new Error('an expression with mistakes is never evaluated')
}

function mistakeOf(error: unknown): Mistake {
  const { summary, range } = error as { summary?: string; range?: { start: number } }
  const message = (summary ?? messageOf(error)).replace(/^Unexpected token: EOF$/, 'the expression ends too early')
  return { offset: range?.start ?? 0, message }
}

/** `phases.my-phase.state` is a subtraction to CEL. */
function hyphenated(text: string, names: Names): Mistake[] {
  const bare = text.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, quoted => ' '.repeat(quoted.length))
  const mistakes: Mistake[] = []
  for (const match of bare.matchAll(/(?<![\w.])(phases|inputs)\.(\w+(?:-\w+)+)/g)) {
    const [, root, dotted] = match
    const known = root === 'phases' ? names.phases : names.inputs
    const parts = dotted!.split('-')
    if (known.has(parts[0]!)) continue
    const name =
      parts.map((_, at) => parts.slice(0, parts.length - at).join('-')).find(each => known.has(each)) ?? dotted!
    mistakes.push({ offset: match.index, message: `a name with a hyphen is written ${root}['${name}']` })
  }
  return mistakes
}

const LOOPS = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])

/** Walks the syntax tree: which names it reads, and what of them. */
class Survey {
  readonly uses: Use[] = []
  readonly mistakes: Mistake[] = []
  readonly reads = new Map<string, Read>()
  readonly nodes: ASTNode[] = []
  readonly #names: Names

  constructor(names: Names) {
    this.#names = names
  }

  /** `bound` are the variables of the loops around `node`. */
  visit(node: ASTNode, bound: readonly string[]): void {
    this.nodes.push(node)
    this.#pattern(patternOf(node))
    const path = pathOf(node)
    if (path) {
      if (!bound.includes(path.root)) this.#name(path)
    } else if (node.op === 'rcall' && isLoop(node.args)) {
      const [method, receiver, [variable, ...rest]] = node.args
      if (method !== 'bind') this.visit(receiver, bound)
      const inner = [...bound, String(variable!.args)]
      for (const each of rest) this.visit(each, inner)
    } else if (node.op !== 'value') {
      this.#visitAll(node.args, bound)
    }
  }

  /** What is written out is found wrong before it runs. */
  #pattern(node: ASTNode | null): void {
    if (node?.op !== 'value' || typeof node.args !== 'string') return
    try {
      compilePattern(node.args)
    } catch (error) {
      this.#mistake(node.start, messageOf(error))
    }
  }

  #visitAll(args: unknown, bound: readonly string[]): void {
    if (Array.isArray(args)) for (const each of args) this.#visitAll(each, bound)
    else if (isNode(args)) this.visit(args, bound)
  }

  #name({ root, offset, keys }: Path): void {
    if (!ROOTS.includes(root)) {
      const known = this.#names.item ? ROOTS : ROOTS.filter(name => name !== 'item' && name !== 'index')
      return this.#mistake(offset, `unknown name \`${root}\`${didYouMean(root, known)}: there are ${known.join(', ')}`)
    }
    const [first, second] = keys
    if (root === 'item' || root === 'index') {
      if (!this.#names.item) this.#mistake(offset, `\`${root}\` exists in a map's \`key\` and \`inputs\` only`)
    } else if (root === 'run') {
      if (first && !RUN_FIELDS.includes(first.name)) {
        this.#mistake(
          first.offset,
          `a run has no \`${first.name}\`${didYouMean(first.name, RUN_FIELDS)}: it has id and name`,
        )
      }
    } else if (root === 'inputs') {
      if (!first) this.uses.push({ kind: 'input', name: '*', offset })
      else if (this.#names.inputs.has(first.name))
        this.uses.push({ kind: 'input', name: first.name, offset: first.offset })
      else
        this.#mistake(
          first.offset,
          `no input \`${first.name}\`${didYouMean(first.name, this.#names.inputs)} is declared`,
        )
    } else if (!first) {
      this.#mistake(offset, "name a phase by `phases.<name>` or `phases['<name>']`")
    } else if (!this.#names.phases.has(first.name)) {
      this.#mistake(first.offset, `there is no phase \`${first.name}\`${didYouMean(first.name, this.#names.phases)}`)
    } else if (second && !PHASE_FIELDS.includes(second.name)) {
      const fields = PHASE_FIELDS.join(', ')
      this.#mistake(
        second.offset,
        `a phase has no \`${second.name}\`${didYouMean(second.name, PHASE_FIELDS)}: it has ${fields}`,
      )
    } else {
      this.uses.push({ kind: 'phase', name: first.name, offset: first.offset })
    }
    remember(this.reads, [root, ...keys.map(key => key.name)])
  }

  #mistake(offset: number, message: string): void {
    this.mistakes.push({ offset, message })
  }
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value
}

/** A macro that declares a variable: `list.map(x, …)` or `cel.bind(x, …)`. */
function isLoop([method, receiver, args]: [string, ASTNode, ASTNode[]]): boolean {
  if (args[0]?.op !== 'id') return false
  return method === 'bind' ? receiver.op === 'id' && receiver.args === 'cel' : LOOPS.has(method)
}

interface Path {
  root: string
  offset: number
  keys: { name: string; offset: number }[]
}

/** `a.b['c']` as a root and its keys; null for what is not read by name alone. */
function pathOf(node: ASTNode): Path | null {
  if (node.op === 'id') return { root: node.args, offset: node.start, keys: [] }
  if (node.op !== '.' && node.op !== '[]') return null
  const [left, right] = node.args
  const name = typeof right === 'string' ? right : right.op === 'value' ? right.args : null
  if (typeof name !== 'string') return null
  const path = pathOf(left)
  if (!path) return null
  path.keys.push({ name, offset: typeof right === 'string' ? node.pos : right.start })
  return path
}

function remember(reads: Map<string, Read>, [key, ...rest]: string[]): void {
  const known = reads.get(key!)
  if (known === 'all') return
  if (rest.length === 0) {
    reads.set(key!, 'all')
    return
  }
  const inner = known ?? new Map<string, Read>()
  reads.set(key!, inner)
  remember(inner, rest)
}

/** The variables that are read. A declared input that was not given is null. */
function contextOf(reads: Map<string, Read>, scope: Scope): Record<string, CelValue> {
  const context: Record<string, CelValue> = {}
  for (const [root, read] of reads) {
    if (root === 'phases') {
      const phases = new Map<string, CelValue>()
      if (read !== 'all') for (const [name, part] of read) phases.set(name, pick({ ...scope.phase(name) }, part))
      context.phases = phases
    } else if (root === 'inputs') {
      const inputs = pick(scope.inputs, read) as Map<string, CelValue>
      if (read !== 'all') for (const name of read.keys()) if (!inputs.has(name)) inputs.set(name, null)
      context.inputs = inputs
    } else {
      context[root] = pick((root === 'run' ? scope.run : root === 'item' ? scope.item : scope.index) ?? null, read)
    }
  }
  return context
}

function pick(value: Json, read: Read): CelValue {
  if (read === 'all' || !isObject(value)) return toCel(value)
  const picked = new Map<string, CelValue>()
  for (const [key, part] of read) if (Object.hasOwn(value, key)) picked.set(key, pick(value[key] as Json, part))
  return picked
}
