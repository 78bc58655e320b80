// Reads a tree that has not ended back into memory, after a restart or a rollback, and continues it. Everything follows
// from the rows.

import { type LiveRun, NO_CLOCK, resume, startClock } from '../../core/core.ts'
import { takeUpMap } from '../kinds/map.ts'
import { LOST, readRun } from '../kinds/read.ts'
import { consider } from '../kinds/settle.ts'
import { stopAgain } from '../kinds/stop.ts'
import { takeUpTeam } from '../kinds/team.ts'
import { keepRunTime } from '../state/idle.ts'
import { park, parkExcess } from '../state/map-slots.ts'
import type { Work } from '../state/state.ts'
import { followBelow, setClock, tellAbove } from '../state/transition.ts'
import { dropTree } from '../state/trees.ts'

/** Reads a tree into memory and replaces its previous state in memory. Throws when it cannot be read. */
export function loadTree(work: Work, root: string): void {
  const isNew = !work.lives.has(root)
  dropTree(work, root)
  const loaded: LiveRun[] = []
  for (const row of work.store.runs.openOf(root)) {
    if (row.parent_id === null || work.lives.has(row.parent_id)) loaded.push(readRun(work, row))
  }
  for (const live of loaded.toReversed()) countAbove(live)
  // A home of an older version may have been left between a question and the states above it.
  for (const live of loaded.toReversed()) {
    tellAbove(work, live)
    if (live.parent) followBelow(work, live.parent, live.row.parent_position!, live.row.reason)
  }
  for (const live of loaded) {
    if (isNew) clearAgain(work, live)
    takeUp(work, live)
  }
}

/**
 * Clears the folders of phases that are in a later attempt, because another process may have ended before it did so.
 * Not for phases of this process: it has cleared their folders, and may be handing files over at the moment.
 */
function clearAgain(work: Work, live: LiveRun): void {
  for (const [position, { state, attempt }] of live.phases.entries()) {
    const { type } = live.phase(position)
    if (attempt === 1 || (type !== 'map' && type !== 'team')) continue
    const hasBegun = state === 'running' || (state === 'awaiting_input' && live.below(position).runs.size > 0)
    if (hasBegun) work.notes.after({ kind: 'clear', runId: live.id, position })
  }
}

/** Adds a run to the counters of the run above. The runs below it must have been counted before. */
function countAbove(live: LiveRun): void {
  for (const phase of live.team.phases) if (phase.type === 'map') parkExcess(live, phase)
  const above = live.siblings
  live.idle = live.ended < live.phases.length && live.allWaits()
  if (!above) return
  if (live.row.state === 'awaiting_input') above.asked++
  if (!live.idle) return
  above.idle++
  live.keepsPlace = live.settles()
  if (!live.keepsPlace) park(live)
}

/** Continues a run that was read: wakes its clocks, sends its tasks again, and starts what may start. */
function takeUp(work: Work, live: LiveRun): void {
  keepRunTime(work, live)
  if (live.row.deadline !== null) work.world.wakeAt(live.row.deadline)
  const open: number[] = []
  for (const position of live.phases.keys()) {
    startLostClock(work, live, position)
    const phase = live.phase(position)
    const { state, clock } = live.phases[position]!
    if (clock.deadline !== null) work.world.wakeAt(clock.deadline)
    // What stopped it in another process, other than a question to a person, has to be begun again.
    if (state === 'running' && !live.phaseWaits(position))
      setClock(work, live, position, resume(clock, work.world.now()))
    if (state === 'pending') open.push(position)
    if (state !== 'running' && state !== 'awaiting_input') continue
    if (state === 'awaiting_input' && live.below(position).runs.size === 0) continue
    stopAgain(work, live, position)
    if (phase.type === 'map') takeUpMap(work, live, phase)
    if (phase.type === 'team') takeUpTeam(work, live, phase)
  }
  for (const position of open) {
    const phase = live.phases[position]!
    if (phase.state !== 'pending' || phase.open > 0) continue
    const mayGoOn = !live.callsOff(position) && phase.attempt > 0 && (phase.reason === LOST || phase.reason === 'retry')
    if (!mayGoOn) consider(work, live, position)
    else if (phase.dueAt !== null && phase.dueAt > work.world.now()) work.world.wakeAt(phase.dueAt)
    else live.makeReady(position)
  }
  work.agenda.add(live)
}

/**
 * Starts a clock that is missing in the row. The first engine kept the clocks of team and map phases only in memory.
 */
function startLostClock(work: Work, live: LiveRun, position: number): void {
  const phase = live.phase(position)
  const recorded = live.phases[position]!
  const { state } = recorded
  if (phase.timeout === undefined || (phase.type !== 'team' && phase.type !== 'map')) return
  if (recorded.clock !== NO_CLOCK || (state !== 'running' && state !== 'awaiting_input')) return
  const { started_at, error } = work.store.phases.get(live.id, position)!
  if (error !== null) return // it took too long already, or has failed and asks a person
  const now = work.world.now()
  setClock(work, live, position, startClock(phase.timeout, state === 'running' ? (started_at ?? now) : now))
}
