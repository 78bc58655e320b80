// Opens ended runs again. This is the only way out of an ended state, and it always starts a new attempt. Runs keep
// their ids and the results of completed phases.

import { type RunRow, startClock } from '../../core/core.ts'
import { considerPhase } from '../phase/phase-end.ts'
import type { EngineState } from '../state/state.ts'
import { readRun } from './read.ts'

/** Starts the new attempt of a `queued` run. Completed phases are kept. */
export function reopenRun(engine: EngineState, row: RunRow): void {
  const { agenda, notes, store, world } = engine
  const now = world.now()
  const { timeout } = world.bundle(row.bundle_id).team(row.team_key)
  const { deadline } = startClock(timeout, now)
  store.runs.startQueued(row.id, now, deadline)
  store.attempts.keepReopened(row.id)
  const opened = store.phases.reopen(row.id)
  const live = readRun(engine, store.runs.get(row.id)!)
  if (deadline !== null) world.wakeAt(deadline)
  notes.changed(live)
  for (const position of opened) notes.changed(live, position)
  notes.event(live, 'on_start', null)
  for (const [position, { state, open }] of live.phases.entries()) {
    if (state === 'pending' && open === 0) considerPhase(engine, live, position)
  }
  agenda.add(live)
}

/**
 * Opens everything in a sub-run again. Sub-runs of its maps remain ended until the items are evaluated again, because
 * only then is it known which of them still have an item.
 */
export function openWhole({ notes, store }: EngineState, runId: string): void {
  store.attempts.keepWhole(runId)
  const phases = store.phases.openWhole(runId)
  store.items.deleteWhole(runId)
  store.receipts.doubtVouchedWhole(runId)
  notes.changedRows(store.runs.requeueWhole(runId), phases)
}
