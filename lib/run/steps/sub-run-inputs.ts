// The inputs of a sub-run. They follow from what is recorded, so secret ones need no storage of their own.

import { handedPath } from '../../agent/file-rule.ts'
import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { conversionOf, type Field, inputsFor, type MapPhase, type TeamPhase } from '../../team/team.ts'
import type { LiveRun } from '../core/core.ts'
import { placesOf, withFiles } from './file-inputs.ts'
import { type Reading, scopeOf } from './scope.ts'

export interface Item {
  value: Json
  index: number
}

export function subRunInputs(
  reading: Reading,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  item: Item | undefined,
): JsonObject {
  const team = live.bundle.team(phase.team)
  const given = phase.inputs.evaluate(scopeOf(reading, live, item)) as JsonObject
  const { values, problems } = inputsFor(team.inputs, given)
  if (problems.length > 0) {
    const list = [...problems.map(({ message }) => message), ...conversions(team.inputs, given)].join('; ')
    throw new CadreError('invalid_request', `${phase.inputs.place}: inputs of ${team.name}: ${list}`)
  }
  return withFiles(team.inputs, values, path => handedPath(path, placesOf(reading, live.row)))
}

/** How to give a value of the declared type, where a function does that. */
function conversions(fields: readonly Field[], given: JsonObject): string[] {
  const names = fields.map(({ name, type }) => conversionOf(given[name] ?? null, type))
  return [
    ...(names.includes('double') ? ['`double(…)` makes a number of this text'] : []),
    ...(names.includes('string') ? ['`string(…)` makes a text of this value'] : []),
  ]
}
