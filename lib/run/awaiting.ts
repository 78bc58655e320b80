// Waiting for a person. Whether somebody is asked below decides the state of a run and of the phases above it, up to the
// top; the clock of a run stands meanwhile.

import type { GatePhase } from '../team/team.ts'
import { watchDeadline } from './clocks.ts'
import { errorOf } from './ending.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import { openReview, type Question } from './reviews.ts'
import { scopeOf } from './scope.ts'
import { phaseEnded, runMay } from './transitions.ts'

/** Puts a phase before a person. */
export function ask(machine: Machine, live: LiveRun, position: number, asked: Question): void {
  const question = machine.mask(live, asked)
  machine.enter(live, position, 'awaiting_input', question.reason)
  awaitingChanged(machine, live)
  openReview(machine, live, position, question)
}

export function askGate(
  machine: Machine,
  live: LiveRun,
  position: number,
  review: NonNullable<GatePhase['review']>,
): void {
  try {
    const prompt = String(review.prompt.evaluate(scopeOf(machine, live)))
    ask(machine, live, position, {
      kind: 'gate',
      reason: 'review',
      entries: [],
      prompt,
      ...(review.timeout !== undefined && { timeout: review.timeout }),
    })
  } catch (thrown) {
    machine.failPhase(live, position, errorOf(thrown))
  }
}

/** Makes the state of a run, and of the phases above it, follow whether somebody is asked. */
export function awaitingChanged(machine: Machine, live: LiveRun): void {
  const state = live.awaiting > 0 ? 'awaiting_input' : 'running'
  if (live.row.state === state || !runMay(live.row.state, state)) return
  const now = machine.host.now()
  const { deadline, time_left } = live.row
  if (state === 'awaiting_input' && deadline !== null) {
    live.row.time_left = Math.max(0, deadline - now)
    live.row.deadline = null
  } else if (state === 'running' && time_left !== null) {
    live.row.deadline = now + time_left
    live.row.time_left = null
    watchDeadline(machine, live)
  }
  live.row.state = state
  live.row.reason = state === 'running' ? null : reasonOf(live)
  machine.store.setRunState(live.id, state, live.row.reason, live.row.deadline, live.row.time_left)
  machine.host.changed(live, null)
  const { parent } = live
  if (!parent) return
  const position = live.row.parent_position!
  const asked = [...parent.below(position)].some(child => child.row.state === 'awaiting_input')
  const above = asked ? 'awaiting_input' : 'running'
  if (parent.phases[position]!.state === above || phaseEnded(parent.phases[position]!.state)) return
  machine.enter(parent, position, above, asked ? live.row.reason : null)
  awaitingChanged(machine, parent)
}

function reasonOf(live: LiveRun): string | null {
  return live.phases.find(phase => phase.state === 'awaiting_input')?.reason ?? null
}
