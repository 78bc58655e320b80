// Resume: a new attempt of a run that has ended. Run ids and recorded results stay; what did not complete is open again,
// and with `from` also that phase and all that depends on it. What will be repeated is said before it is.

import { CadreError } from '../error.ts'
import type { Team } from '../team/team.ts'
import { childOf } from './children.ts'
import type { Machine } from './machine.ts'
import { positionOf, type RunRow } from './records.ts'
import { openPhase, openWhole, requeueRun } from './reopening.ts'
import { runEnded } from './transitions.ts'
import { type Written, writtenBelow } from './why.ts'

export interface ResumePlan {
  run_id: string
  /** Phases of the run that will run again. Inside their sub-runs only what did not complete does, unless `from` asks for more. */
  repeats: string[]
  /** What they wrote outside already: it is not sent again. */
  written: Written[]
}

/** What a resume would repeat. Throws `not_found`, `invalid_state`, or `invalid_request` for an unknown phase. */
export function planResume(machine: Machine, runId: string, from: string | null): ResumePlan {
  const row = resumable(machine, runId, from)
  const team = machine.host.bundle(row.bundle_id).team(row.team_key)
  const whole = reached(team, from)
  const again = new Set([...open(machine, row), ...whole])
  const phasesOf = (run: RunRow) => machine.host.bundle(run.bundle_id).team(run.team_key).phases
  const written = writtenBelow(machine.store, row, phasesOf).filter(write => {
    const top = topPosition(machine, write)
    if (write.state !== 'done' || !again.has(top)) return false
    return whole.includes(top) || machine.store.phase(write.run_id, write.position)!.state !== 'completed'
  })
  return {
    run_id: runId,
    repeats: team.phases.filter(phase => again.has(phase.index)).map(phase => phase.name),
    written: written.map(({ position: _, ...write }) => write),
  }
}

/** The phase of the top run that a write, however deep, happened below. */
function topPosition({ store }: Machine, { run_id, position }: { run_id: string; position: number }): number {
  const { tree_key } = store.run(run_id)!
  return tree_key === '' ? position : positionOf(tree_key)
}

/** Begins the new attempt. Inside a journal change. */
export function resume(machine: Machine, runId: string, from: string | null): void {
  const row = resumable(machine, runId, from)
  const team = machine.host.bundle(row.bundle_id).team(row.team_key)
  for (const position of reached(team, from)) {
    openPhase(machine, row, position)
    const below = team.phases[position]!.type === 'team' && childOf(machine.store, runId, position, 0)
    if (below) openWhole(machine, below.id)
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

/** The phase `from` and all that depends on it. */
function reached(team: Team, from: string | null): number[] {
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
  return queue
}
