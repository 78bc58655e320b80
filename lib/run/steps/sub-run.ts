// Sub-runs of team and map phases: how they are created, how they begin a new attempt, and which inputs they get.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { type Field, inputsFor, type MapPhase, type TeamPhase } from '../../team/team.ts'
import type { LiveRun, RunRow } from '../core/core.ts'
import { type ChildRow, dropSmallFilesBelow } from '../store/store.ts'
import { create, maskInputs } from './begin.ts'
import type { Errand } from './effects.ts'
import { fileOutputs } from './end.ts'
import type { Machine } from './machine.ts'
import { openWhole, reopenRun } from './reopen.ts'
import { type Reading, scopeOf } from './scope.ts'

/** Most levels of sub-runs. */
export const MAX_DEPTH = 1_000

export interface Item {
  value: Json
  index: number
}

export function createSubRun(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  key: string | null,
  item: Item | undefined,
): void {
  const { row } = live
  if (row.call_depth + 1 > MAX_DEPTH) {
    throw new CadreError(
      'invalid_request',
      `${phase.place}: sub-runs nest at most ${MAX_DEPTH} levels deep, and ${live.bundle.team(phase.team).name} would be one more; end the recursion with \`when\``,
    )
  }
  const run = {
    id: Bun.randomUUIDv7(),
    bundle: live.bundle,
    teamKey: phase.team,
    inputs: subRunInputs(machine, live, phase, item),
    runName: null,
    workspace: row.workspace,
    fromPath: row.from_path === 1,
    synced: row.synced === 1,
  }
  create(machine, run, { live, position: phase.index, item: item?.index ?? 0, key })
}

/** Begins the new attempt of a sub-run. What it completed stays, unless its inputs have changed since. */
export function reopenSubRun(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  id: string,
  item: Item | undefined,
): void {
  const { store } = machine
  const folder = phase.type === 'map' ? store.items.folder(live.id, phase.index, item!.index) : ''
  // Its files are removed, and must not come back after a power cut.
  if (folder !== null) dropSmallFilesBelow(store.db, live.id, ['files', phase.name, folder].filter(Boolean).join('/'))
  const { inputs: fields } = live.bundle.team(phase.team)
  const inputs = JSON.stringify(maskInputs(fields, subRunInputs(machine, live, phase, item)))
  if (inputs !== machine.store.runs.get(id)!.inputs) {
    machine.store.runs.setInputs(id, inputs)
    openWhole(machine, id)
  }
  reopenRun(machine, machine.store.runs.get(id)!)
}

/** The inputs of a sub-run. They follow from what is recorded, so secret ones need no storage of their own. */
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

/** Whether a completed sub-run has file outputs that have not been handed to the run above. */
export function lacksHandOver(live: LiveRun, child: Pick<ChildRow, 'team_key' | 'outputs' | 'handed'>): boolean {
  if (child.handed !== null || child.outputs === null) return false
  return fileOutputs({ team: live.bundle.team(child.team_key) }, JSON.parse(child.outputs)).length > 0
}

/** Has something done outside for a phase that has begun. */
export function sendErrand(machine: Machine, live: LiveRun, position: number, kind: Errand['kind'], child?: string) {
  live.errands.set(position, (live.errands.get(position) ?? 0) + 1)
  const { attempt } = live.phases[position]!
  const errand = { kind, runId: live.id, position, attempt, ...(child !== undefined && { child }) }
  machine.after({ kind: 'errand', errand })
}

export function errandDone(live: LiveRun, position: number): void {
  const left = (live.errands.get(position) ?? 1) - 1
  if (left > 0) live.errands.set(position, left)
  else live.errands.delete(position)
}

export type CompletedChild = Pick<RunRow, 'id' | 'team' | 'outputs' | 'handed' | 'team_key'>
