// What the outcome of an attempt means for its phase: it ends, asks a person, or is tried again later.

import { backoff } from '../../../backoff.ts'
import type { GatePhase } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import type { Outcome } from '../state/effects.ts'
import { failureOf } from '../state/fault.ts'
import { scopeOf } from '../state/scope.ts'
import type { Work } from '../state/state.ts'
import { postpone } from '../state/transition.ts'
import { ask, entriesAfter } from './question.ts'
import { endPhase, failPhase } from './settle.ts'

/** No phase waits longer for its next attempt, however large its `backoff` is. */
const LONGEST_WAIT_MS = 5 * 60_000

export function conclude(work: Work, live: LiveRun, position: number, outcome: Outcome): void {
  const phase = live.phase(position)
  const { calledOff } = live
  if (outcome.kind === 'completed') {
    if (phase.type === 'gate' && phase.review) {
      if (calledOff) return endPhase(work, live, position, 'cancelled', { reason: calledOff.reason })
      return askGate(work, live, phase.index, phase.review)
    }
    const { kind: _, small: __, ...change } = outcome
    return endPhase(work, live, position, 'completed', change)
  }
  if (outcome.kind === 'cancelled' || live.callsOff(position)) {
    return endPhase(work, live, position, 'cancelled', { reason: live.ending?.reason ?? 'cancelled' })
  }
  const { error } = outcome
  if (outcome.kind === 'unknown') {
    if (calledOff) return endPhase(work, live, position, 'failed', { error })
    const { entries, sent } = outcome
    const rest = entriesAfter(phase, entries).join(', ')
    const next = rest && `after it come ${rest}: complete and retry go on with them`
    const prompt = [error.message, sent, next].filter(Boolean).join('\n')
    return ask(work, live, position, { kind: 'escalation', reason: 'unknown', entries, prompt, error })
  }
  const { failures } = live.phases[position]!
  if (!outcome.retryable || failures + 1 >= phase.retry.attempts || live.ending) {
    return failPhase(work, live, position, error)
  }
  const wait = { firstMs: phase.retry.backoff, mostMs: LONGEST_WAIT_MS, random: work.world.random }
  postpone(work, live, position, work.world.now() + backoff(failures, wait), failures + 1, error)
}

function askGate(work: Work, live: LiveRun, position: number, review: NonNullable<GatePhase['review']>): void {
  let prompt: string
  try {
    prompt = String(review.prompt.evaluate(scopeOf(work, live)))
  } catch (thrown) {
    return failPhase(work, live, position, failureOf(thrown))
  }
  const { timeout } = review
  ask(work, live, position, {
    kind: 'gate',
    reason: 'review',
    entries: [],
    prompt,
    ...(timeout !== undefined && { timeout }),
  })
}
