// What an attempt of a leaf phase reports: its outcome, and that it waits for another system to settle.

import { backoff } from '../../../backoff.ts'
import type { LiveRun } from '../../core/core.ts'
import { kindOf } from '../kinds/kinds.ts'
import { endPhase, failPhase } from '../phase/phase-end.ts'
import { askPerson } from '../phase/question.ts'
import { postponePhase } from '../phase/transition.ts'
import type { Outcome } from '../state/effects.ts'
import { type EngineState, liveIn } from '../state/state.ts'
import { reuseSlots, takeSteps } from './step.ts'

/** No phase waits longer for its next attempt, however large its `backoff` is. */
const LONGEST_WAIT_MS = 5 * 60_000

/** An attempt ended. Returns false, and changes nothing, when it is no longer the live attempt. */
export function attemptEnded(
  engine: EngineState,
  runId: string,
  position: number,
  attempt: number,
  outcome: Outcome,
): boolean {
  const live = runningIn(engine, runId, position, attempt)
  if (!live) return false
  applyOutcome(engine, live, position, outcome)
  return true
}

/** The phase ends, asks a person, or is tried again later. */
function applyOutcome(engine: EngineState, live: LiveRun, position: number, outcome: Outcome): void {
  const phase = live.phase(position)
  const { attempts } = kindOf(phase)
  const { nearestEnding } = live
  if (outcome.kind === 'completed') {
    const { kind: _, small: __, ...result } = outcome
    return attempts!.completed(engine, live, phase, result)
  }
  if (outcome.kind === 'cancelled' || live.cancelRequest(position)) {
    return endPhase(engine, live, position, 'cancelled', { reason: live.ending?.reason ?? 'cancelled' })
  }
  const { error } = outcome
  if (outcome.kind === 'unknown') {
    if (nearestEnding) return endPhase(engine, live, position, 'failed', { error })
    const { entries, sent } = outcome
    const rest = attempts!.entriesAfter(phase, entries).join(', ')
    const next = rest && `after it come ${rest}: complete and retry go on with them`
    const prompt = [error.message, sent, next].filter(Boolean).join('\n')
    return askPerson(engine, live, position, { kind: 'escalation', reason: 'unknown', entries, prompt, error })
  }
  const { failures } = live.phases[position]!
  if (!outcome.retryable || failures + 1 >= phase.retry.attempts || live.ending) {
    return failPhase(engine, live, position, error)
  }
  const wait = { firstMs: phase.retry.backoff, mostMs: LONGEST_WAIT_MS, random: engine.world.random }
  postponePhase(engine, live, position, engine.world.lived() + backoff(failures, wait), failures + 1, error)
}

/**
 * An attempt waits for another system to settle: its phase stays `running` and counts in every concurrency, but gives its
 * slot back, and its clock and the clocks above it stop. Returns false, and changes nothing, when it is no longer the
 * live attempt.
 */
export function startSettling(engine: EngineState, runId: string, position: number, attempt: number): boolean {
  const live = runningIn(engine, runId, position, attempt)
  if (!live) return false
  if (!live.settling.has(position)) {
    live.settling.add(position)
    engine.slots.release()
  }
  engine.agenda.add(live)
  takeSteps(engine, live.root)
  reuseSlots(engine, live.root)
  return true
}

/**
 * An attempt waits until a limit lets its next entry begin. It gives its slot back, so that no other run waits behind it,
 * and its clock stops; the clocks above it go on. Does nothing when it is no longer the live attempt.
 */
export function startPacing(engine: EngineState, runId: string, position: number, attempt: number): boolean {
  const live = runningIn(engine, runId, position, attempt)
  if (!live) return false
  if (!live.paced.has(position)) {
    live.paced.add(position)
    engine.slots.release()
  }
  reuseSlots(engine, live.root)
  return true
}

/** An attempt goes on with the slot that it was given again. The clocks above it go on, too. */
export function endSettling(engine: EngineState, live: LiveRun): void {
  engine.agenda.add(live)
  takeSteps(engine, live.root)
}

function runningIn(engine: EngineState, runId: string, position: number, attempt: number): LiveRun | null {
  const live = liveIn(engine, runId, position, attempt)
  return live && live.phases[position]!.state === 'running' ? live : null
}
