// The beginning of an attempt of a run: its first phases become ready. If its environment demands that, a person is asked
// first, and until somebody approves nothing of it begins: no phase, no listener of its start. One approval is for all
// attempts of a run, because they execute the same bundle with the same inputs.

import { type LiveRun, START } from '../../core/core.ts'
import { considerPhase } from '../phase/phase-end.ts'
import { noteEscalation, openReview } from '../phase/question.ts'
import { raiseStateToParent } from '../phase/transition.ts'
import type { EngineState } from '../state/state.ts'

/** How long nobody may answer before the run ends as if it were rejected. */
const UNANSWERED_MS = 30 * 24 * 60 * 60 * 1_000

/** Begins a run, or asks a person whether it may begin. */
export function beginRun(engine: EngineState, live: LiveRun): void {
  if (live.row.review === null || engine.store.reviews.isStartApproved(live.id)) return runBegins(engine, live)
  live.setAsksStart(true)
  raiseStateToParent(engine, live)
  const { environment, team, version } = live.row
  const place = environment === null ? '' : ` in the environment ${environment}`
  const prompt = engine.world.mask(live.root, `Run ${team}@${version}${place}?`)
  openReview(engine, live, START, { kind: 'start', reason: 'review', entries: [], prompt, timeout: UNANSWERED_MS })
  noteEscalation(engine, live, null)
  engine.agenda.add(live)
}

/** Begins a run that a person has approved. */
export function runApproved(engine: EngineState, live: LiveRun): void {
  live.setAsksStart(false)
  raiseStateToParent(engine, live)
  runBegins(engine, live)
}

function runBegins(engine: EngineState, live: LiveRun): void {
  engine.notes.event(live, 'on_start', null)
  readyFirst(engine, live)
}

/** Makes the phases ready that depend on nothing which has not ended. */
export function readyFirst(engine: EngineState, live: LiveRun): void {
  for (const [position, { state, open }] of live.phases.entries()) {
    if (state === 'pending' && open === 0) considerPhase(engine, live, position)
  }
  engine.agenda.add(live)
}
