// Gates: commands that must pass, a question to a person, or both in this order.

import type { FileRecord } from '../../../agent/agent-context.ts'
import type { GatePhase } from '../../../team/team.ts'
import type { ReviewShown } from '../../../wire/records/review-records.ts'
import type { LiveRun } from '../../core/core.ts'
import { endPhase, failPhase } from '../phase/phase-end.ts'
import { askPerson } from '../phase/question.ts'
import type { Completed } from '../state/effects.ts'
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

/** More files than this are only counted. */
const MOST_FILES = 200

function listed(files: readonly FileRecord[]): Pick<ReviewShown, 'files' | 'more_files'> {
  const more = files.length - MOST_FILES
  return {
    files: files.slice(0, MOST_FILES).map(({ name, path, bytes }) => ({ name, path, bytes })),
    ...(more > 0 && { more_files: more }),
  }
}

/** Asks the person of the gate, once its commands have passed. */
function completed(engine: EngineState, live: LiveRun, phase: GatePhase, { printed, ...result }: Completed): void {
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
    ...(printed && { shown: { ...printed, ...listed(result.files ?? []) }, files: result.files ?? [] }),
  })
}
