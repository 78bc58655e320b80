// Reads one run that has not ended into memory. A leaf phase that is `running` in its row but is not executed by this
// process may start again, as a new attempt.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Bundle, PhaseWithSubRuns } from '../../../team/team.ts'
import { type Clock, type LivePhase, LiveRun, NO_CLOCK, type RunRow, START } from '../../core/core.ts'
import type { PhaseStates, TurnRow } from '../../store/store.ts'
import type { EngineState } from '../state/state.ts'
import { subRunInputs } from './sub-run-inputs.ts'

/** The run above must have been read before. */
export function readRun(engine: EngineState, row: RunRow): LiveRun {
  const parent = row.parent_id === null ? null : engine.lives.get(row.parent_id)!
  const bundle = engine.world.bundle(row.bundle_id)
  const team = bundle.team(row.team_key)
  const phases = engine.store.phases.states(row.id).map((phase, position): LivePhase => {
    const isExecuted = engine.world.executing(row.id, position, phase.attempt)
    const isLost = phase.state === 'running' && team.phases[position]!.isLeaf && !isExecuted
    const turn = team.phases[position]!.repeat ? engine.store.turns.last(row.id, position) : null
    return { ...livePhase(phase, turn), ...(isLost && { state: 'pending', reason: LOST }) }
  })
  const live = new LiveRun(row, bundle, parent, phases, inputsOf(engine, row, bundle, parent))
  engine.notes.touch(live.root)
  engine.lives.set(row.id, live)
  const mayAsk = row.review !== null && row.state === 'awaiting_input'
  if (mayAsk) live.setAsksStart(engine.store.reviews.pending(row.id, START) !== null)
  live.siblings?.runs.add(live)
  for (const [position, { state, attempt }] of phases.entries()) {
    if (state === 'running' && engine.world.settling(row.id, position, attempt)) live.settling.add(position)
    if (state === 'running' && engine.world.paced(row.id, position, attempt)) live.paced.add(position)
    if (live.holdsSlot(position)) engine.slots.take()
  }
  return live
}

/** A reason in memory only: the process that executed the attempt is gone. */
export const LOST = 'lost'

function livePhase(row: PhaseStates, last: TurnRow | null): LivePhase {
  const { state, reason, attempt, failures, due_at, deadline, time_left } = row
  const clock: Clock = deadline === null && time_left === null ? NO_CLOCK : { deadline, left: time_left }
  const turn = last && { number: last.turn, ended: last.completed_at !== null, since: 0 }
  return { state, reason, attempt, failures, turn, dueAt: due_at, clock, open: 0, blocked: false }
}

/**
 * Rows hold secret inputs masked: those of a top run come from its encrypted file, those of a sub-run from its parent.
 */
function inputsOf(engine: EngineState, row: RunRow, bundle: Bundle, parent: LiveRun | null): JsonObject {
  const recorded: JsonObject = JSON.parse(row.inputs)
  const secret = bundle.team(row.team_key).inputs.filter(input => input.secret && input.name in recorded)
  if (secret.length === 0) return recorded
  if (!parent) {
    const kept = engine.world.secretInputs(row.id)
    const gone = secret.filter(({ name }) => !(name in kept)).map(({ name }) => name)
    if (gone.length === 0) return { ...recorded, ...kept }
    throw new CadreError(
      'invalid_state',
      `the values of its secret inputs are lost (${gone.join(', ')}): give them again with \`resume\``,
    )
  }
  const phase = parent.phase(row.parent_position!) as PhaseWithSubRuns
  // Only the sub-runs of a map have items.
  const item = engine.store.items.get(parent.id, phase.index, row.item!)
  return subRunInputs(engine, parent, phase, item ? { value: JSON.parse(item.value), index: item.item } : undefined)
}
