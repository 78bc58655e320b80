// Checks what a person says of a trigger, and its team, when it is added or changed. Everything that is wrong is reported
// at once, with pointers into the body of the call.

import { parseDuration } from '../duration.ts'
import { CadreError, type Detail } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { type Field, type OccasionRule, occasionRule, problemWith } from '../team/team.ts'
import { didYouMean } from '../text/spelling.ts'
import { checkSchedule, type ScheduleFields } from '../triggers/schedule/spec.ts'
import type { Overlap, TriggerKind } from '../wire/records/trigger-words.ts'
import type { TriggerSpec } from './trigger.ts'

/** The body of a call, as far as a person may write and change it. */
export interface TriggerFields extends ScheduleFields {
  team: string
  inputs?: JsonObject | undefined
  when?: string | null | undefined
  workspace?: string | null | undefined
  run_name?: string | null | undefined
  overlap?: Overlap | undefined
  queue_max?: number | undefined
  at_most?: { count: number; per: string } | null | undefined
}

/** What expressions may name, by kind. */
export const VARIABLES: Readonly<Record<TriggerKind, readonly string[]>> = {
  schedule: ['slot', 'now'],
  hook: ['body', 'headers', 'query', 'delivery'],
  watch: ['files'],
  chain: ['run'],
}

/** The spec of a schedule whose team declares `declared`. Throws `invalid_request` with every mistake. */
export function specOf(
  fields: TriggerFields,
  declared: readonly Field[],
  around: { tz: string; now: number },
): TriggerSpec {
  const { overlap = 'skip', queue_max = 1, at_most = null, when = null, inputs = {} } = fields
  const checked = checkSchedule(fields, { ...around, overlap })
  const problems: Detail[] = [...(checked.problems ?? [])]
  if (at_most && parseDuration(at_most.per) === null) {
    problems.push({ path: '/at_most/per', message: 'must be a duration such as 10m, 1h or 1d' })
  }
  try {
    problems.push(...inputProblems(declared, ruleOf({ when, inputs }, 'schedule')))
  } catch (error) {
    if (!(error instanceof CadreError) || error.code !== 'invalid_request') throw error
    problems.push(...(error.details ?? []))
  }
  if (problems.length > 0 || !checked.spec) throw refusal(problems)
  const { team, workspace = null, run_name = null } = fields
  return { team, inputs, when, workspace, run_name, overlap, queue_max, at_most, schedule: checked.spec }
}

/** `when` and `inputs` of a trigger, compiled. */
export const ruleOf = ({ when, inputs }: Pick<TriggerSpec, 'when' | 'inputs'>, kind: TriggerKind): OccasionRule =>
  occasionRule({ ...(when !== null && { when }), inputs }, VARIABLES[kind])

/** What is wrong with the inputs, as far as it is known before an occasion comes. */
function inputProblems(fields: readonly Field[], rule: OccasionRule): Detail[] {
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

function refusal(details: readonly Detail[]): CadreError {
  const text = details.map(({ path, message }) => `${path.slice(1).replaceAll('/', '.')}: ${message}`).join('; ')
  return new CadreError('invalid_request', text, { details: [...details] })
}
