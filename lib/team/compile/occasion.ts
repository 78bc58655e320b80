// `when` and `inputs` of a trigger, which name the variables of an occasion: the slot of a schedule, the body of a
// delivery. They are compiled when the trigger is added, and evaluated for each occasion.

import { CadreError, type Detail } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { didYouMean } from '../../text/spelling.ts'
import { compileExpression, compileTemplate, type Site } from '../cel/cel.ts'
import { type Expression, type Field, type Problem, problemWith, type Scope, type Template } from '../model/model.ts'
import { field, readYaml, Source } from '../yaml/yaml.ts'

/** What a trigger does with an occasion. Each throws `invalid_request` that names the place. */
export interface OccasionRule {
  /** Whether the occasion starts a run. */
  admits(variables: JsonObject): boolean
  inputsOf(variables: JsonObject): JsonObject
  /** The inputs that it gives. */
  readonly names: ReadonlySet<string>
  /** Those that no occasion changes. */
  readonly constants: JsonObject
}

/**
 * Compiles what a trigger says of its occasions. `variables` are the names that one has. Throws `invalid_request` with
 * every mistake; the `details` point at `/when` and into `/inputs`.
 */
export function occasionRule(
  { when, inputs = {} }: { when?: string; inputs?: JsonObject },
  variables: readonly string[],
): OccasionRule {
  const written = JSON.stringify({ ...(when !== undefined && { when }), inputs }, null, 2)
  const source = new Source('the trigger', written)
  const names = { phases: new Set<string>(), inputs: new Set<string>(), item: false, occasion: variables }
  const site: Site = { source, names, files: new Set(), used: () => {} }
  const root = readYaml(source) ?? undefined
  const condition = field(root, 'when')
  const expression: Expression | null =
    condition?.kind === 'scalar' ? compileExpression(condition, site, ['bool'], '`when` must give a bool') : null
  const given = field(root, 'inputs')
  const templates = new Map<string, Template>()
  if (given?.kind === 'map') {
    for (const [name, { node }] of given.entries) templates.set(name, compileTemplate(node, site))
  }
  if (source.problems.length > 0) throw mistakes(source.problems)
  const constants: JsonObject = {}
  for (const [name, template] of templates) {
    if (template.constant !== undefined) constants[name] = template.constant
  }
  return {
    names: new Set(templates.keys()),
    constants,
    admits: variables =>
      expression === null || named('when', expression.place, () => expression.evaluate(scopeOf(variables))) === true,
    inputsOf(variables) {
      const values: JsonObject = {}
      for (const [name, template] of templates) {
        values[name] = named(`input ${name}`, template.place, () => template.evaluate(scopeOf(variables)))
      }
      return values
    },
  }
}

/** The error of an expression names its field, because the text in which it has a place was made here. */
function named<T>(field: string, place: string, evaluate: () => T): T {
  try {
    return evaluate()
  } catch (error) {
    if (!(error instanceof CadreError)) throw error
    throw new CadreError(error.code, `${field}: ${error.message.replace(`${place}: `, '')}`, { cause: error })
  }
}

/** What is wrong with the inputs, as far as it is known before an occasion comes. */
export function inputProblems(fields: readonly Field[], rule: OccasionRule): Detail[] {
  const problems: Detail[] = []
  for (const field of fields) {
    const path = `/inputs/${field.name}`
    if (rule.names.has(field.name) && field.secret) {
      problems.push({
        path,
        message: `input ${field.name} is secret, and a trigger keeps its inputs: use a named secret`,
      })
    } else if (Object.hasOwn(rule.constants, field.name)) {
      const problem = problemWith(rule.constants[field.name]!, field)
      if (problem) problems.push({ path, message: `input ${field.name}: ${problem}` })
    } else if (field.required && !rule.names.has(field.name)) {
      problems.push({ path, message: `input ${field.name} is required` })
    }
  }
  const declared = fields.map(({ name }) => name)
  for (const name of rule.names) {
    if (declared.includes(name)) continue
    problems.push({ path: `/inputs/${name}`, message: `no input ${name} is declared${didYouMean(name, declared)}` })
  }
  return problems
}

/** The text of the source is made here, so that its lines say nothing to a person; the paths do. */
function mistakes(problems: readonly Problem[]): CadreError {
  const details = problems.map(({ path, message }) => ({ path, message }))
  const text = details.map(({ path, message }) => `${path.slice(1)}: ${message}`).join('; ')
  return new CadreError('invalid_request', text, { details })
}

const scopeOf = (occasion: JsonObject): Scope => ({
  occasion,
  inputs: {},
  run: { id: '', name: null, started_at: null, environment: null },
  phase: () => {
    throw new CadreError('internal', 'an occasion of a trigger has no phases')
  },
})
