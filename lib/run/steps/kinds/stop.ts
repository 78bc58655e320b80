// Asks a run, and all runs below it, to end. Phases that wait end at once; attempts that execute are aborted and end
// once they have stopped. `always` phases still run, to clean up, unless the run is asked a second time.

import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import {
  type Ending,
  isLeaf,
  type LiveRun,
  NO_CLOCK,
  parse,
  phaseEnded,
  type RunError,
  type RunRow,
  startClock,
} from '../../core/core.ts'
import type { Work } from '../state/state.ts'
import { CLEANUP_MS, setClock } from '../state/transition.ts'
import { closeReview } from './question.ts'
import { endPhase, failPhase } from './settle.ts'

/** Throws unless the run can be asked to end. */
export function refuseStop({ store }: Work, runId: string): RunRow {
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

/** Whether a run was asked to end, also when that is still on its way from a run above. */
export function isAsked(live: LiveRun): boolean {
  if (live.ending || live.stop) return true
  const { parent, row } = live
  if (!parent || !isAsked(parent)) return false
  return (parent.stop?.hard ?? parent.ending?.hard ?? false) || !parent.phase(row.parent_position!).always
}

/** Whether a phase goes on when the run `top`, its own or one above, is asked to end: it cleans up, or a phase above it. */
export function outlasts(live: LiveRun, position: number, top: string): boolean {
  if (live.phase(position).always) return true
  if (live.id === top || !live.parent) return false
  return outlasts(live.parent, live.row.parent_position!, top)
}

/** Asks a run to end. What was on its way to it from a run above is part of that. */
export function stopRun(work: Work, live: LiveRun, given: Ending): void {
  const asked = live.stop?.hard ? { ...given, hard: true } : given
  live.stop = null
  if (live.ending && (live.ending.hard || !asked.hard)) return
  const ending = live.ending ? { ...live.ending, hard: true } : asked
  work.notes.touch(live.root)
  live.ending = ending
  live.row.deadline = null
  live.row.time_left = null
  work.store.runs.setEnding(live.id, ending)
  for (const position of live.phases.keys()) stopPhase(work, live, position, ending)
  work.agenda.add(live)
}

function stopPhase(work: Work, live: LiveRun, position: number, ending: Ending): void {
  const phase = live.phase(position)
  const { state, attempt } = live.phases[position]!
  const cleansUp = phase.always && !ending.hard
  const cancel = () => endPhase(work, live, position, 'cancelled', { reason: ending.reason })
  if (phaseEnded(state)) return
  if (state === 'pending') {
    if (!cleansUp) cancel()
    return
  }
  // A phase with a question of its own has nothing open below it.
  if (state === 'awaiting_input' && live.below(position).asked === 0) {
    closeReview(work, live, position)
    return cancel()
  }
  if (isLeaf(phase)) {
    const place = { runId: live.id, position, attempt }
    if (!cleansUp) work.notes.after({ kind: 'abort', ...place })
    else if (phase.timeout === undefined) work.notes.after({ kind: 'limit', ...place, ms: CLEANUP_MS })
    return
  }
  // A map also continues when none of its sub-runs is open: it may be between two of them.
  if (cleansUp) return limitCleanup(work, live, position)
  if (!stopBelow(work, live, position, ending.hard ?? false)) cancel()
}

/** Asks the sub-runs of a phase to end, each in a step of its own. False when there is none. */
function stopBelow(work: Work, live: LiveRun, position: number, hard: boolean): boolean {
  const { runs } = live.below(position)
  for (const child of runs) stopSoon(work, child, hard)
  return runs.size > 0
}

function stopSoon(work: Work, child: LiveRun, hard: boolean): void {
  child.stop = { state: 'cancelled', reason: 'parent', ...((hard || child.stop?.hard) && { hard: true }) }
  work.agenda.add(child)
}

/** After a restart: passes on to sub-runs that the run above was asked to end, or that its phase took too long. */
export function stopAgain(work: Work, live: LiveRun, position: number): void {
  if (live.below(position).runs.size === 0) return
  const ending = live.callsOff(position)
  if (ending) stopBelow(work, live, position, ending.hard ?? false)
  else if (parse<RunError>(work.store.phases.error(live.id, position))?.code === 'timeout') {
    // Those that were asked before the restart keep how they were asked: the run may have been asked to end since.
    for (const child of live.below(position).runs) if (!child.ending) stopSoon(work, child, live.ending !== null)
  }
}

function limitCleanup(work: Work, live: LiveRun, position: number): void {
  if (live.phase(position).timeout !== undefined) return
  setClock(work, live, position, startClock(CLEANUP_MS, work.world.now()))
}

/** A team or map phase took longer than its timeout: the sub-runs are cancelled, and the phase fails with that. */
export function overrun(work: Work, live: LiveRun, position: number): void {
  const limit = live.phase(position).timeout ?? CLEANUP_MS
  const error = { code: 'timeout', message: `the attempt took longer than ${formatDuration(limit)}` }
  const progress = live.maps.get(position)
  if (progress) progress.stopped = true
  setClock(work, live, position, NO_CLOCK)
  // The row has the error before the last sub-run ends, whose end then makes the phase fail with it.
  work.store.phases.setError(live.id, position, error)
  if (!stopBelow(work, live, position, live.ending !== null)) failPhase(work, live, position, error)
}
