// The inputs of a sub-run. They follow from what is recorded, so secret ones need no storage of their own.

import { handedPath } from '../../../agent/files/file-rule.ts'
import { CadreError } from '../../../error.ts'
import type { Json, JsonObject } from '../../../json.ts'
import { conversionOf, type Field, inputsFor, type PhaseWithSubRuns, secretReader } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import { type Reading, scopeOf } from '../state/scope.ts'
import { fileAccessOf, outsideFilesOf, withFiles } from './file-inputs.ts'

export interface Item {
  value: Json
  index: number
}

export function subRunInputs(
  reading: Reading,
  live: LiveRun,
  phase: PhaseWithSubRuns,
  item: Item | undefined,
): JsonObject {
  const team = live.bundle.team(phase.team)
  const given = phase.inputs.evaluate(scopeOf(reading, live, item)) as JsonObject
  const { values, problems } = inputsFor(team.inputs, given, team.inPlace?.untyped)
  if (problems.length > 0) {
    const list = [...problems.map(({ message }) => message), ...conversions(team.inputs, given)].join('; ')
    throw new CadreError('invalid_request', `${phase.inputs.place}: inputs of ${team.name}: ${list}`)
  }
  if (!team.inputs.some(({ type }) => type === 'file')) return values
  const { row, bundle, inputs } = live
  const own = secretReader(bundle, row.team_key).fromPath
  const above = fileAccessOf(reading, row, outsideFilesOf(row, own, bundle.team(row.team_key).inputs, inputs))
  // A default is what the team below says, which may be a package that nobody has read.
  const isOwnBelow = secretReader(bundle, phase.team).fromPath
  const below = fileAccessOf(reading, row, { outside: row.from_path === 1 && isOwnBelow })
  return withFiles(team.inputs, values, (path, name) => handedPath(path, name in given ? above : below))
}

/** How to give a value of the declared type, where a function does that. */
function conversions(fields: readonly Field[], given: JsonObject): string[] {
  const names = fields.map(({ name, type }) => conversionOf(given[name] ?? null, type))
  return [
    ...(names.includes('double') ? ['`double(…)` makes a number of this text'] : []),
    ...(names.includes('string') ? ['`string(…)` makes a text of this value'] : []),
  ]
}
