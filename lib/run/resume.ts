// Resume: a new attempt of a run that has ended. Run ids and recorded results stay; what did not complete is open again,
// and with `from` also that phase and all that depends on it. What will be repeated is said before it is.

import { CadreError } from '../error.ts'
import type { Team } from '../team/team.ts'
import { itemCount } from './children.ts'
import type { Machine } from './machine.ts'
import type { RunRow } from './records.ts'
import { openPhase, openSubtree, requeueRun } from './reopening.ts'
import { runEnded } from './transitions.ts'

export interface ResumePlan {
  run_id: string
  /** Phases of the run that will run again; inside sub-runs only what did not complete does. */
  repeats: string[]
}

/** What a resume would repeat. Throws `not_found`, `invalid_state`, or `invalid_request` for an unknown phase. */
export function planResume(machine: Machine, runId: string, from: string | null): ResumePlan {
  const row = resumable(machine, runId, from)
  const team = machine.host.bundle(row.bundle_id).team(row.team_key)
  const again = new Set([...open(machine, row), ...reached(machine, row, team, from)])
  return { run_id: runId, repeats: team.phases.filter(phase => again.has(phase.index)).map(phase => phase.name) }
}

/** Begins the new attempt. Inside a journal change. */
export function resume(machine: Machine, runId: string, from: string | null): void {
  const row = resumable(machine, runId, from)
  const team = machine.host.bundle(row.bundle_id).team(row.team_key)
  for (const position of reached(machine, row, team, from)) {
    openPhase(machine.store, runId, position)
    openSubtree(machine.store, row.root_id, row.tree_key, position)
  }
  requeueRun(machine.store, runId)
  machine.reopen(machine.store.run(runId)!)
  machine.drain()
}

function resumable(machine: Machine, runId: string, from: string | null): RunRow {
  const row = machine.store.run(runId)
  if (!row) throw new CadreError('not_found', `no run ${runId}`)
  if (row.parent_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: resume its top run ${row.root_id}`)
  }
  if (!runEnded(row.state)) throw new CadreError('invalid_state', `run ${runId} is ${row.state}: it goes on by itself`)
  if (row.state === 'completed' && from === null) {
    throw new CadreError('invalid_state', `run ${runId} is completed: name the phase to repeat it from`)
  }
  const team = machine.host.bundle(row.bundle_id).team(row.team_key)
  if (team.inputs.some(input => input.secret)) {
    throw new CadreError(
      'invalid_state',
      `run ${runId} had secret inputs, which are gone since it ended: start a new run`,
    )
  }
  return row
}

/** Phases that did not complete. */
function open(machine: Machine, row: RunRow): number[] {
  return machine.store
    .phases(row.id)
    .filter(
      ({ state, reason }) =>
        state === 'failed' || state === 'cancelled' || (state === 'skipped' && reason === 'upstream'),
    )
    .map(phase => phase.position)
}

function reached(machine: Machine, row: RunRow, team: Team, from: string | null): number[] {
  if (from === null) return []
  const first = team.phases.find(phase => phase.name === from)
  if (!first) {
    const names = team.phases.map(phase => phase.name).join(', ')
    throw new CadreError('invalid_request', `${team.name} has no phase ${from}; it has ${names}`, {
      details: [{ path: '/from_phase', message: `expected one of ${names}` }],
    })
  }
  const queue = [first.index]
  for (const position of queue) {
    for (const dependant of team.phases[position]!.dependants) if (!queue.includes(dependant)) queue.push(dependant)
  }
  const frozen = queue.slice(1).find(position => itemCount(machine.store, row.id, position) > 0)
  if (frozen !== undefined) {
    const { name } = team.phases[frozen]!
    throw new CadreError(
      'invalid_state',
      `map ${name} keeps the items it has: resume from ${name} or later, or start a new run`,
    )
  }
  return queue
}
