// Reads one run that has not ended into memory. A leaf phase that is `running` in its row but is not executed by this
// process may start again, as a new attempt.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Bundle, MapPhase, TeamPhase } from '../../../team/team.ts'
import { type Clock, isLeaf, type LivePhase, LiveRun, NO_CLOCK, type RunRow } from '../../core/core.ts'
import type { PhaseStates } from '../../store/store.ts'
import type { Work } from '../state/state.ts'
import { subRunInputs } from '../state/sub-run-inputs.ts'

/** The run above must have been read before. */
export function readRun(work: Work, row: RunRow): LiveRun {
  const parent = row.parent_id === null ? null : work.lives.get(row.parent_id)!
  const bundle = work.world.bundle(row.bundle_id)
  const team = bundle.team(row.team_key)
  const phases = work.store.phases.states(row.id).map((phase, position): LivePhase => {
    const isExecuted = work.world.executing(row.id, position, phase.attempt)
    const isLost = phase.state === 'running' && isLeaf(team.phases[position]!) && !isExecuted
    return { ...livePhase(phase), ...(isLost && { state: 'pending', reason: LOST }) }
  })
  const live = new LiveRun(row, bundle, parent, phases, inputsOf(work, row, bundle, parent))
  work.notes.touch(live.root)
  work.lives.set(row.id, live)
  live.siblings?.runs.add(live)
  for (const [position, { state, attempt }] of phases.entries()) {
    if (state === 'running' && work.world.settling(row.id, position, attempt)) live.settling.add(position)
    if (live.holdsSlot(position)) work.slots.take()
  }
  return live
}

/** A reason in memory only: the process that executed the attempt is gone. */
export const LOST = 'lost'

function livePhase({ state, reason, attempt, failures, due_at, deadline, time_left }: PhaseStates): LivePhase {
  const clock: Clock = deadline === null && time_left === null ? NO_CLOCK : { deadline, left: time_left }
  return { state, reason, attempt, failures, dueAt: due_at, clock, open: 0, blocked: false }
}

/**
 * Rows hold secret inputs masked: those of a top run come from its encrypted file, those of a sub-run from its parent.
 */
function inputsOf(work: Work, row: RunRow, bundle: Bundle, parent: LiveRun | null): JsonObject {
  const recorded: JsonObject = JSON.parse(row.inputs)
  const secret = bundle.team(row.team_key).inputs.filter(input => input.secret && input.name in recorded)
  if (secret.length === 0) return recorded
  if (!parent) {
    const kept = work.world.secretInputs(row.id)
    const gone = secret.filter(({ name }) => !(name in kept)).map(({ name }) => name)
    if (gone.length === 0) return { ...recorded, ...kept }
    throw new CadreError(
      'invalid_state',
      `the values of its secret inputs are lost (${gone.join(', ')}): give them again with \`resume\``,
    )
  }
  const phase = parent.phase(row.parent_position!) as TeamPhase | MapPhase
  const item = phase.type === 'map' ? work.store.items.get(parent.id, phase.index, row.item!) : null
  return subRunInputs(work, parent, phase, item ? { value: JSON.parse(item.value), index: item.item } : undefined)
}
