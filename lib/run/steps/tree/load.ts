// Reads a tree that has not ended back into memory, after a restart or a rollback, and continues it. Everything follows
// from the rows.

import { hasSubRuns } from '../../../team/team.ts'
import { type LiveRun, NO_CLOCK, resume, START, startClock } from '../../core/core.ts'
import { kindOf } from '../kinds/kinds.ts'
import { repeatStop } from '../kinds/sub-runs.ts'
import { setPhaseClock, syncRunClock } from '../phase/clocks.ts'
import { park, parkExcess } from '../phase/map-slots.ts'
import { considerPhase } from '../phase/phase-end.ts'
import { raiseStateToParent, takeStateFromSubRuns } from '../phase/transition.ts'
import { LOST, readRun } from '../run/read.ts'
import type { EngineState } from '../state/state.ts'
import { dropTree } from './whole-tree.ts'

/** Reads a tree into memory and replaces its previous state in memory. Throws when it cannot be read. */
export function loadTree(engine: EngineState, root: string): void {
  const isNew = !engine.lives.has(root)
  dropTree(engine, root)
  const loaded: LiveRun[] = []
  for (const row of engine.store.runs.openOf(root)) {
    if (row.parent_id === null || engine.lives.has(row.parent_id)) loaded.push(readRun(engine, row))
  }
  for (const live of loaded.toReversed()) countAbove(live)
  // A home of an older version may have been left between a question and the states above it.
  for (const live of loaded.toReversed()) {
    raiseStateToParent(engine, live)
    if (live.parent) takeStateFromSubRuns(engine, live.parent, live.row.parent_position!, live.row.reason)
  }
  for (const live of loaded) {
    if (isNew) clearAgain(engine, live)
    continuePhases(engine, live)
  }
}

/** Why a phase is pending that has begun before, and begins its next attempt without another look at what is before it. */
const GOES_ON: readonly (string | null)[] = [LOST, 'retry', 'repeat']

/**
 * Clears the folders of phases that are in a later attempt: the process before may have ended before it cleared them. Not
 * called for a tree that this process has read before: it has cleared the folders, and may be handing files over now.
 */
function clearAgain(engine: EngineState, live: LiveRun): void {
  for (const [position, { state, attempt }] of live.phases.entries()) {
    if (attempt === 1 || !hasSubRuns(live.phase(position))) continue
    const hasBegun = state === 'running' || (state === 'awaiting_input' && live.below(position).runs.size > 0)
    if (hasBegun) engine.notes.after({ kind: 'clear', runId: live.id, position })
  }
}

/** Adds a run to the counters of the run above. The runs below it must have been counted before. */
function countAbove(live: LiveRun): void {
  for (const phase of live.team.phases) if (hasSubRuns(phase)) parkExcess(live, phase)
  const above = live.siblings
  live.idle = live.ended < live.phases.length && live.allWaits()
  if (!above) return
  if (live.row.state === 'awaiting_input') above.asked++
  if (!live.idle) return
  above.idle++
  live.keepsMapSlot = live.settles()
  if (!live.keepsMapSlot) park(live)
}

/** Continues a run that was read: wakes its clocks, sends its tasks again, and makes phases ready that may start. */
function continuePhases(engine: EngineState, live: LiveRun): void {
  syncRunClock(engine, live)
  if (live.row.deadline !== null) engine.world.wakeAt(live.row.deadline)
  const open: number[] = []
  for (const position of live.phases.keys()) {
    startLostClock(engine, live, position)
    const phase = live.phase(position)
    const { state, clock } = live.phases[position]!
    if (clock.deadline !== null) engine.world.wakeAt(clock.deadline)
    // An attempt that waited for another system to settle starts again in this process, so its time goes on.
    if (state === 'running' && !live.phaseWaits(position))
      setPhaseClock(engine, live, position, resume(clock, engine.world.lived()))
    if (state === 'pending') open.push(position)
    if (state !== 'running' && state !== 'awaiting_input') continue
    if (state === 'awaiting_input' && live.below(position).runs.size === 0) {
      engine.notes.after({ kind: 'next', runId: live.id, position })
      continue
    }
    repeatStop(engine, live, position)
    kindOf(phase).subRuns?.continue(engine, live, phase)
  }
  if (live.asksStart) engine.notes.after({ kind: 'next', runId: live.id, position: START })
  for (const position of live.asksStart ? [] : open) {
    const phase = live.phases[position]!
    if (phase.state !== 'pending' || phase.open > 0) continue
    const mayGoOn = !live.cancelRequest(position) && phase.attempt > 0 && GOES_ON.includes(phase.reason)
    if (!mayGoOn) considerPhase(engine, live, position)
    else if (phase.dueAt !== null && phase.dueAt > engine.world.lived()) engine.world.wakeAt(phase.dueAt)
    else live.makeReady(position)
  }
  engine.agenda.add(live)
}

/**
 * Starts a clock that is missing in the row, from its beginning: the first engine kept the clocks of team and map phases
 * only in memory, and the time at which the phase began is one of a wall clock.
 */
function startLostClock(engine: EngineState, live: LiveRun, position: number): void {
  const phase = live.phase(position)
  const recorded = live.phases[position]!
  const { state } = recorded
  if (phase.timeout === undefined || !hasSubRuns(phase)) return
  if (recorded.clock !== NO_CLOCK || (state !== 'running' && state !== 'awaiting_input')) return
  const { error } = engine.store.phases.get(live.id, position)!
  if (error !== null) return // it took too long already, or has failed and asks a person
  setPhaseClock(engine, live, position, startClock(phase.timeout, engine.world.lived()))
}
