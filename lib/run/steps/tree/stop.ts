// Asks a run, and all runs below it, to end. Phases that wait end at once; attempts that execute are aborted and end
// once they have stopped. `always` phases still run, to clean up, unless the run is asked a second time.

import { CadreError } from '../../../error.ts'
import { type Ending, type LiveRun, phaseEnded, type RunRow, START } from '../../core/core.ts'
import { kindOf } from '../kinds/kinds.ts'
import { endPhase } from '../phase/phase-end.ts'
import { closeReview } from '../phase/question.ts'
import { raiseStateToParent } from '../phase/transition.ts'
import type { EngineState } from '../state/state.ts'

/** Throws unless the run can be asked to end. */
export function refuseStop({ store }: EngineState, runId: string): RunRow {
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  if (row.completed_at !== null) {
    throw new CadreError('invalid_state', `run ${runId} has already ended (${row.state})`)
  }
  if (row.state === 'queued' && row.parent_id !== null) {
    throw new CadreError(
      'invalid_state',
      `run ${runId} waits for its new attempt and cannot be cancelled alone: cancel its top run ${row.root_id}`,
    )
  }
  return row
}

/** Whether a run was asked to end. A request of a run above may not have reached it yet. */
export function isAsked(live: LiveRun): boolean {
  if (live.ending || live.pendingStop) return true
  const { parent, row } = live
  if (!parent || !isAsked(parent)) return false
  return (parent.pendingStop?.hard ?? parent.ending?.hard ?? false) || !parent.phase(row.parent_position!).always
}

/**
 * Whether a phase goes on when the run `top`, its own or one above, is asked to end, because the phase itself or a phase
 * above it cleans up.
 */
export function outlasts(live: LiveRun, position: number, top: string): boolean {
  if (live.phase(position).always) return true
  if (live.id === top || !live.parent) return false
  return outlasts(live.parent, live.row.parent_position!, top)
}

/** Asks a run to end. A request of a run above that has not reached it yet is part of that. */
export function stopRun(engine: EngineState, live: LiveRun, given: Ending): void {
  // Of a run that nobody has approved nothing executes, and so nothing cleans up.
  const asked = live.pendingStop?.hard || live.asksStart ? { ...given, hard: true } : given
  live.pendingStop = null
  if (live.ending && (live.ending.hard || !asked.hard)) return
  const ending = live.ending ? { ...live.ending, hard: true } : asked
  engine.notes.touch(live.root)
  live.ending = ending
  live.row.deadline = null
  live.row.time_left = null
  engine.store.runs.setEnding(live.id, ending)
  if (live.asksStart) {
    closeReview(engine, live, START)
    live.setAsksStart(false)
    raiseStateToParent(engine, live)
  }
  for (const position of live.phases.keys()) stopPhase(engine, live, position)
  engine.agenda.add(live)
}

function stopPhase(engine: EngineState, live: LiveRun, position: number): void {
  const phase = live.phase(position)
  const { state } = live.phases[position]!
  const ending = live.cancelRequest(position)
  if (phaseEnded(state)) return
  // A phase that asks a person itself has no open sub-runs.
  const isAsked = state === 'awaiting_input' && live.below(position).asked === 0
  if (isAsked) closeReview(engine, live, position)
  if (isAsked || (state === 'pending' && ending)) {
    return endPhase(engine, live, position, 'cancelled', { reason: live.ending!.reason })
  }
  if (state !== 'pending') kindOf(phase).stop(engine, live, phase)
}
