// Opens ended runs again. This is the only way out of an ended state, and it always starts a new attempt. Runs keep
// their ids and the results of the phases that stay.

import { hasSubRuns, type Phase } from '../../../team/team.ts'
import { type Repetition, type RunRow, startClock } from '../../core/core.ts'
import type { EngineState } from '../state/state.ts'
import { beginRun } from './begin.ts'
import { readRun } from './read.ts'
import { countedChildren, PassedOver, repetitionsOf, teamOf } from './repeated.ts'

type Run = Pick<RunRow, 'id' | 'bundle_id' | 'team_key'>

/**
 * Starts the new attempt of a `queued` run. If nothing of a sub-run has been opened, what did not complete is opened. Of a
 * top run the resume has opened what it repeats, which may be nothing: then its outputs are made again.
 */
export function reopenRun(engine: EngineState, row: RunRow): void {
  const { notes, store, world } = engine
  const { timeout } = teamOf(engine, row)
  const lived = world.lived()
  const { deadline } = startClock(timeout, lived)
  store.runs.startQueued(row.id, { at: world.now(), lived, deadline })
  const isOpened = store.phases.states(row.id).some(({ state }) => state === 'pending')
  if (!isOpened && row.parent_id !== null) openPhases(engine, row, repetitionsOf(engine, row))
  const live = readRun(engine, store.runs.get(row.id)!)
  if (deadline !== null) world.wakeAt(deadline)
  notes.changed(live)
  beginRun(engine, live)
}

/** Opens the phases of an ended run that are repeated. With `passedOver` also what was passed over below them. */
export function openPhases(
  engine: EngineState,
  run: Run,
  repetitions: readonly Repetition[],
  passedOver: PassedOver | null = null,
): void {
  const { notes, store } = engine
  const { phases } = teamOf(engine, run)
  for (const [position, repetition] of repetitions.entries()) {
    if (repetition === 'keep') continue
    const phase = phases[position]!
    store.attempts.keepOpened(run.id, position)
    notes.changedRows([], [{ run_id: run.id, position }])
    const stay = passedOver ? 'failed' : 'completed'
    if (repetition === 'rest') {
      store.phases.open(run.id, position, stay)
      if (passedOver) openBelow(engine, run, phase, passedOver)
      continue
    }
    const renewal = repetition === 'whole' ? null : stay
    store.phases.openAnew(run.id, position, renewal)
    if (phase.repeat) store.turns.drop(run.id, position)
    store.items.delete(run.id, position)
    if (renewal === null) openWholePhase(engine, run, phase)
  }
}

/** Opens everything below a phase. Which sub-runs of a map still have an item is known when the items are evaluated. */
function openWholePhase(engine: EngineState, { id }: Run, { index, type }: Phase): void {
  engine.store.receipts.doubtVouched(id, index)
  // The sub-run of a later turn is opened when that turn begins.
  const below = type === 'team' ? engine.store.runs.child(id, index, 0) : null
  if (below) openWhole(engine, below.id)
}

function openBelow(engine: EngineState, run: Run, phase: Phase, passedOver: PassedOver): void {
  if (!hasSubRuns(phase)) return
  for (const child of countedChildren(engine, run.id, phase)) openPassedOver(engine, child, passedOver)
}

/** Opens what was passed over in an ended sub-run, if anything was, and what did not complete. */
export function openPassedOver(engine: EngineState, child: Run, passedOver = new PassedOver(engine)): void {
  if (!passedOver.in(child)) return
  openPhases(engine, child, repetitionsOf(engine, child, passedOver), passedOver)
  engine.notes.changedRows(engine.store.runs.requeue(child.id), [])
}

/**
 * Opens everything in a sub-run again. Sub-runs of its maps remain ended until the items are evaluated again, because
 * only then is it known which of them still have an item.
 */
export function openWhole({ notes, store }: EngineState, runId: string): void {
  store.attempts.keepWhole(runId)
  store.turns.dropWhole(runId)
  const phases = store.phases.openWhole(runId)
  store.items.deleteWhole(runId)
  store.receipts.doubtVouchedWhole(runId)
  notes.changedRows(store.runs.requeueWhole(runId), phases)
}
