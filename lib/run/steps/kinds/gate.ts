// Gates: commands that must pass, a question to a person, or both in this order.

import type { GatePhase } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { endPhase, failPhase } from '../phase/phase-end.ts'
import { askPerson } from '../phase/question.ts'
import { failureOf } from '../state/fault.ts'
import { scopeOf } from '../state/scope.ts'
import type { EngineState } from '../state/state.ts'
import { launch, stopAttempt } from './leaf.ts'
import type { PhaseKind } from './phase-kind.ts'

export const gate: PhaseKind<GatePhase> = {
  start(engine, live, phase) {
    if (phase.isLeaf) launch(engine, live, phase)
    else completed(engine, live, phase, {})
  },
  stop: stopAttempt,
  attempts: { completed, entriesAfter: () => [] },
  subRuns: null,
}

/** Asks the person of the gate, once its commands have passed. */
function completed(engine: EngineState, live: LiveRun, phase: GatePhase, result: PhaseChange): void {
  const { index, review } = phase
  if (!review) return endPhase(engine, live, index, 'completed', result)
  const { nearestEnding } = live
  if (nearestEnding) return endPhase(engine, live, index, 'cancelled', { reason: nearestEnding.reason })
  let prompt: string
  try {
    prompt = String(review.prompt.evaluate(scopeOf(engine, live)))
  } catch (thrown) {
    return failPhase(engine, live, index, failureOf(thrown))
  }
  const { timeout } = review
  askPerson(engine, live, index, {
    kind: 'gate',
    reason: 'review',
    entries: [],
    prompt,
    ...(timeout !== undefined && { timeout }),
  })
}
