// The inputs of a sub-run. They follow from what is recorded, so secret ones need no storage of their own.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { type Field, inputsFor, type MapPhase, type TeamPhase } from '../../team/team.ts'
import type { LiveRun } from '../core/core.ts'
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
  const given = phase.inputs.evaluate(scopeOf(reading, live, item))
  const { values, problems } = inputsFor(team.inputs, given as JsonObject)
  if (problems.length > 0) {
    const list = problems.map(({ message }) => message).join('; ')
    throw new CadreError('invalid_request', `${phase.inputs.place}: inputs of ${team.name}: ${list}`)
  }
  return resolveFiles(reading, live, team.inputs, values)
}

/** Makes paths of this run's files absolute, because in the sub-run `files/…` means the sub-run's own files. */
function resolveFiles(reading: Reading, live: LiveRun, fields: readonly Field[], values: JsonObject): JsonObject {
  const resolved = { ...values }
  for (const { name, type } of fields) {
    const value = values[name]
    if (type === 'file' && typeof value === 'string' && value.startsWith('files/')) {
      resolved[name] = `${reading.world.stateDir(live.id)}/${value}`
    }
  }
  return resolved
}
