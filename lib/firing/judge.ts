// Whether an occasion starts a run, by what its trigger says of it: `when`, and inputs that fit the team. Pure.

import { CadreError, messageOf } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { type Field, inputsFor } from '../team/team.ts'
import { ruleOf } from './check-trigger.ts'
import type { Halt } from './halt.ts'
import { kindOf } from './kinds.ts'
import type { Trigger } from './trigger.ts'

/** The inputs of the run, or why there is none. `declared`: the inputs of the team; null: nobody asks whether they fit. */
export function judge(
  trigger: Pick<Trigger, 'kind'> & { spec: Pick<Trigger['spec'], 'when' | 'inputs'> },
  variables: JsonObject,
  declared: readonly Field[] | null,
): { inputs: JsonObject } | Halt {
  const { spec } = trigger
  try {
    const rule = ruleOf(spec, kindOf(trigger))
    if (!rule.admits(variables)) return { state: 'skipped', reason: 'when', detail: `\`when\` is false: ${spec.when}` }
    const inputs = rule.inputsOf(variables)
    const { problems } = declared ? inputsFor(declared, inputs) : { problems: [] }
    if (problems.length === 0) return { inputs }
    return { state: 'refused', reason: 'inputs', detail: problems.map(({ message }) => message).join('; ') }
  } catch (error) {
    if (!(error instanceof CadreError) || error.code === 'internal') throw error
    return { state: 'refused', reason: 'expression', detail: messageOf(error) }
  }
}
