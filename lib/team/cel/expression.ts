// One CEL expression: it is parsed, its names are checked, and it is evaluated. Data goes in and JSON comes out: it can
// reach no object of the program, its work is bounded (meter.ts), and it loads only the values that it names. CEL:
// https://github.com/google/cel-spec. Beyond it, int and double mix in arithmetic, since JSON does not distinguish them.

import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import type { Json } from '../../json.ts'
import { Refusal } from '../../schema/work-budget.ts'
import { type Evaluation, evaluateIn } from './evaluation.ts'
import { registerFunctions } from './functions.ts'
import {
  converted,
  explain,
  inItsForm,
  inOneType,
  type Mistake,
  mistakeOf,
  notOptional,
  withoutTexts,
} from './hints.ts'
import { withInstead } from './instead.ts'
import { type Kind, kindGiven } from './known.ts'
import { withWhatIsThere } from './lacking.ts'
import { checkKeys, meter, stopAtRefusal } from './meter.ts'
import { type Names, Survey, type Use } from './survey.ts'
import { fromCel } from './values.ts'
import { contextOf, forgiveMissing } from './variables.ts'

export interface Parsed {
  /** CEL's name of the type; `dyn` when it is known only at run time. */
  type: string
  /** What it gives if it gives anything; null when that is known only at run time, or not asked. */
  gives: Kind | null
  uses: Use[]
  mistakes: Mistake[]
  /** Throws an EvaluationMistake. Gives null instead of an error when a phase that it names did not complete. */
  evaluate(evaluation: Evaluation): Json
}

export class EvaluationMistake extends Error {
  readonly offset: number

  constructor({ message, offset }: Mistake) {
    super(message)
    this.offset = offset
  }
}

const MAX_LENGTH = 10_000
const LIMITS = { maxAstNodes: 1_000, maxDepth: 50, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 8 }

let environment: Environment | undefined

/** The environment of cel-js. It is made at first use, because making it takes longer than most expressions. */
export function cel(): Environment {
  if (environment) return environment
  const { Environment: Made } = require('@marcbachmann/cel-js') as typeof import('@marcbachmann/cel-js')
  const made = new Made({ homogeneousAggregateLiterals: false, enableOptionalTypes: true, limits: LIMITS })
  for (const name of ['inputs', 'phases', 'run', 'secrets', 'result']) made.registerVariable(name, 'map')
  made.registerVariable('item', 'dyn').registerVariable('index', 'int')
  for (const name of ['slot', 'now', 'body', 'headers', 'query', 'delivery', 'files'])
    made.registerVariable(name, 'dyn')
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
  registerFunctions(made)
  stopAtRefusal(made)
  environment = made
  return made
}

export function parseExpression(text: string, names: Names): Parsed {
  const failed = (mistakes: Mistake[], uses: Use[] = []): Parsed => ({
    type: 'dyn',
    gives: null,
    uses,
    mistakes,
    evaluate() {
      throw new EvaluationMistake(mistakes[0]!)
    },
  })
  if (text.trim() === '') return failed([{ offset: 0, message: 'an expression is expected here' }])
  if (text.length > MAX_LENGTH) {
    return failed([{ offset: 0, message: `an expression may have at most ${MAX_LENGTH} characters` }])
  }
  const hyphens = hyphenated(text, names)
  if (hyphens.length > 0) return failed(hyphens)
  let program: ReturnType<Environment['parse']>
  try {
    program = cel().parse(text)
  } catch (error) {
    return failed([explain(text, mistakeOf(error))])
  }
  const survey = new Survey(names)
  survey.visit(program.ast, [])
  const { uses, mistakes, reads } = survey
  if (mistakes.length > 0) return failed(mistakes, uses)
  const keys = new Set<ASTNode>()
  for (const node of survey.nodes) {
    if (node.op !== 'map') continue
    checkKeys(node)
    for (const [key] of node.args) keys.add(key)
  }
  const check = program.check()
  if (!check.valid) return failed([callMistake(check.error, survey)], uses)
  for (const node of survey.nodes) meter(node, keys.has(node))
  for (const access of survey.accesses) forgiveMissing(access)
  return {
    type: check.type ?? 'dyn',
    gives: names.types && !names.occasion ? kindGiven(program.ast, names.types, names.maps ?? new Set()) : null,
    uses,
    mistakes,
    evaluate(evaluation) {
      return evaluateIn(evaluation, () => {
        try {
          return fromCel(program(contextOf(reads, names, evaluation)), evaluation.work)
        } catch (error) {
          if (evaluation.incomplete.size > 0 && !(error instanceof Refusal) && namesAny(uses, evaluation)) return null
          throw new EvaluationMistake(callMistake(error, survey, evaluation))
        }
      })
    },
  }
}

/** The mistake of a check or an evaluation, with advice. */
function callMistake(error: unknown, { nodes, accesses }: Survey, evaluation?: Evaluation): Mistake {
  const plain = notOptional(converted(inOneType(mistakeOf(error))))
  const formed = inItsForm(plain, () => cel().getDefinitions().functions)
  return withInstead(evaluation ? withWhatIsThere(formed, error, accesses, evaluation.scope) : formed, error, nodes)
}

function namesAny(uses: readonly Use[], { incomplete }: Evaluation): boolean {
  return uses.some(({ kind, name }) => kind === 'phase' && incomplete.has(name))
}

/** `phases.my-phase.state` is a subtraction to CEL. */
function hyphenated(text: string, names: Names): Mistake[] {
  const mistakes: Mistake[] = []
  for (const match of withoutTexts(text).matchAll(/(?<![\w.])(phases|inputs|secrets)\.\??(\w+(?:-\w+)+)/g)) {
    const [, root, dotted] = match
    const known = root === 'phases' ? names.phases : root === 'inputs' ? names.inputs : new Set([dotted!])
    const parts = dotted!.split('-')
    if (known.has(parts[0]!)) continue
    const name =
      parts.map((_, at) => parts.slice(0, parts.length - at).join('-')).find(each => known.has(each)) ?? dotted!
    mistakes.push({ offset: match.index, message: `a name with a hyphen is written ${root}['${name}']` })
  }
  return mistakes
}
