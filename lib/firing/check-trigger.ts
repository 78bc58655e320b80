// Checks what a person says of a trigger, and its team, when it is added or changed. Everything that is wrong is reported
// at once, with pointers into the body of the call.

import type { Static } from 'typebox'
import { parseDuration } from '../duration.ts'
import { CadreError, type Detail } from '../error.ts'
import { Recent } from '../recent.ts'
import { type Field, inputProblems, type OccasionRule, occasionRule } from '../team/team.ts'
import type { AddTrigger } from '../wire/calls/triggers.ts'
import type { TriggerKind } from '../wire/records/trigger-words.ts'
import type { Around, Kind, OwnFields } from './kind.ts'
import { ALL_KINDS, kindOf } from './kinds.ts'
import { refusal } from './refusal.ts'
import type { TriggerSpec } from './trigger.ts'

/** The body of a call, as far as a person may write and change it. */
export type TriggerFields = Omit<Static<(typeof AddTrigger)['body']>, 'name' | 'kind'>

/** The spec of a trigger whose team declares `declared`. Throws `invalid_request` with every mistake. */
export function specOf(
  name: TriggerKind,
  fields: TriggerFields,
  declared: readonly Field[],
  around: Omit<Around, 'overlap'>,
): TriggerSpec {
  const kind = kindOf({ kind: name })
  const { overlap = kind.overlap, queue_max = 1, at_most = null, when = null, inputs = {} } = fields
  const checked = kind.check(fields, { ...around, overlap })
  const problems: Detail[] = [...strangers(kind, fields), ...(checked.problems ?? [])]
  if (at_most && parseDuration(at_most.per) === null) {
    problems.push({ path: '/at_most/per', message: 'must be a duration such as 10m, 1h or 1d' })
  }
  try {
    problems.push(...inputProblems(declared, ruleOf({ when, inputs }, kind)))
  } catch (error) {
    if (!(error instanceof CadreError) || error.code !== 'invalid_request') throw error
    problems.push(...(error.details ?? []))
  }
  if (problems.length > 0 || checked.problems) throw refusal(problems)
  const { team, workspace = null, environment = null, run_name = null } = fields
  return { team, inputs, when, workspace, environment, run_name, overlap, queue_max, at_most, own: checked.own }
}

/** Fields that only other kinds have. */
const strangers = ({ fields: own }: Kind, fields: OwnFields): Detail[] =>
  ALL_KINDS.flatMap(([name, other]) =>
    other.fields
      .filter(field => fields[field] !== undefined && !own.includes(field))
      .map(field => ({ path: `/${field}`, message: `belongs to triggers of the kind ${name}: leave it out` })),
  )

/** Compiling takes longer than everything else that is computed for an occasion. */
const compiled = new Recent<string, OccasionRule>(200)

/** `when` and `inputs` of a trigger, compiled. */
export function ruleOf({ when, inputs }: Pick<TriggerSpec, 'when' | 'inputs'>, { variables }: Kind): OccasionRule {
  const key = JSON.stringify([when, inputs, variables])
  return compiled.get(key) ?? compiled.set(key, occasionRule({ ...(when !== null && { when }), inputs }, variables))
}
