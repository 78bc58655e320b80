// Waiting for a person. A gate asks for approval; an escalation asks what happened, or what to do about a failure.
// There is one review for each phase and attempt, and its answer decides how the phase continues.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { GatePhase } from '../../team/team.ts'
import { type LiveRun, parse, type ReviewRow, type RunError } from '../core/core.ts'
import { JsonText, type PhaseChange } from '../store/store.ts'
import { errorOf } from './fault.ts'
import type { Machine } from './machine.ts'
import { scopeOf } from './scope.ts'

export interface Question {
  kind: ReviewRow['kind']
  reason: string
  prompt: string
  /** Entries whose fate is unknown. */
  entries: readonly string[]
  /** What the phase failed with, and the result that it keeps if the person lets it fail. */
  error?: RunError
  change?: PhaseChange
  /** Milliseconds until the question escalates. */
  timeout?: number
}

export interface Decision {
  decision: 'approve' | 'reject' | 'retry' | 'skip' | 'complete' | 'fail'
  by: string
  comment?: string
  values?: JsonObject
}

export const CHOICES: Record<ReviewRow['kind'], readonly Decision['decision'][]> = {
  gate: ['approve', 'reject'],
  escalation: ['retry', 'skip', 'complete', 'fail'],
}

/** Puts a phase before a person. */
export function ask(machine: Machine, live: LiveRun, position: number, { change, ...asked }: Question): void {
  const question = machine.mask(live, asked)
  machine.enter(live, position, 'awaiting_input', question.reason)
  live.unready(position)
  live.maps.delete(position)
  live.errands.delete(position)
  if (question.error) machine.store.phases.keepResult(live.id, position, question.error, change ?? {})
  openReview(machine, live, position, question)
  tellEscalation(machine, live, position)
}

/** Raises `on_escalate` once for a review: in its run, and in each run above. */
function tellEscalation(machine: Machine, live: LiveRun, position: number): void {
  let asked: number | null = position
  for (let run: LiveRun | null = live; run; run = run.parent) {
    machine.event(run, 'on_escalate', asked)
    asked = run.row.parent_position
  }
}

export function askGate(
  machine: Machine,
  live: LiveRun,
  position: number,
  review: NonNullable<GatePhase['review']>,
): void {
  let prompt: string
  try {
    prompt = String(review.prompt.evaluate(scopeOf(machine, live)))
  } catch (thrown) {
    return machine.failPhase(live, position, errorOf(thrown))
  }
  const { timeout } = review
  ask(machine, live, position, {
    kind: 'gate',
    reason: 'review',
    entries: [],
    prompt,
    ...(timeout !== undefined && { timeout }),
  })
}

function openReview(machine: Machine, live: LiveRun, position: number, question: Question): void {
  const { kind, reason, prompt, entries, timeout } = question
  const at = machine.world.now()
  const deadline = timeout === undefined ? null : at + timeout
  const { attempt } = live.phases[position]!
  machine.store.reviews.open({ run_id: live.id, position, attempt, kind, reason, prompt, entries, deadline, at })
  if (deadline !== null) machine.world.wakeAt(deadline)
  noteReview(machine, live, position)
}

function noteReview(machine: Machine, live: LiveRun, position: number): void {
  machine.note({ run: live.row, team: live.team, position, kind: 'review' })
}

/** A gate that nobody answered in time becomes an escalation. */
export function reviewOverdue(machine: Machine, live: LiveRun, review: ReviewRow): void {
  const { position, prompt } = review
  const reason = 'review_timeout'
  openReview(machine, live, position, { kind: 'escalation', reason, prompt, entries: [] })
  machine.store.phases.setReason(live.id, position, reason)
  live.phases[position]!.reason = reason
  machine.changed(live, position)
}

/** Closes the review of a phase without an answer, because its run ends for another reason. */
export function closeReview(machine: Machine, live: LiveRun, position: number): void {
  machine.store.reviews.close(live.id, position, machine.world.now())
  noteReview(machine, live, position)
}

/** Applies a person's answer. Throws `not_found`, `invalid_state` when it was answered already, `invalid_request`. */
export function decide(machine: Machine, reviewId: string, given: Decision): void {
  const review = machine.store.reviews.get(reviewId)
  if (!review) throw new CadreError('not_found', `there is no review ${reviewId}`)
  const live = machine.lives.get(review.run_id)
  if (review.state !== 'pending' || !live) {
    throw new CadreError(
      'invalid_state',
      `review ${reviewId} has already been decided (${review.decision ?? 'run ended'})`,
    )
  }
  const choices = CHOICES[review.kind]
  if (!choices.includes(given.decision)) {
    throw new CadreError(
      'invalid_request',
      `a review of kind ${review.kind} takes ${choices.join(', ')}, not ${given.decision}`,
      { details: [{ path: '/decision', message: `expected one of ${choices.join(', ')}` }] },
    )
  }
  const answer = machine.mask(live, given)
  const { decision, by, comment = null } = answer
  const values = answer.values ? JSON.stringify(answer.values) : null
  machine.store.reviews.decide(reviewId, { decision, by, comment, values, at: machine.world.now() })
  noteReview(machine, live, review.position)
  apply(machine, live, review, answer)
  machine.follow(live.root)
}

function apply(machine: Machine, live: LiveRun, review: ReviewRow, { decision, by, comment, values }: Decision): void {
  const { position } = review
  const data: Json = values ?? {}
  const said = (verb: string) => `${verb} by ${by}${comment ? `: ${comment}` : ''}`
  switch (decision) {
    case 'approve':
    case 'complete':
      return machine.endPhase(live, position, 'completed', { text: `${decision} by ${by}`, data, files: [] })
    case 'reject': {
      const error = { code: 'rejected', message: said('rejected') }
      return machine.endPhase(live, position, 'failed', { reason: 'rejected', error })
    }
    case 'fail': {
      const error = { code: 'person', message: said('failed') }
      return machine.endPhase(live, position, 'failed', { ...kept(machine, live, position), reason: 'person', error })
    }
    case 'skip':
      return machine.endPhase(live, position, 'skipped', { reason: 'person' })
    case 'retry':
      retry(machine, live, position, JSON.parse(review.entries))
  }
}

/** The result that the phase had when it was put before a person. */
function kept({ store }: Machine, live: LiveRun, position: number): PhaseChange {
  const { text, data, files } = store.phases.result(live.id, position)
  return { text, data: data === null ? null : new JsonText(data), files: parse(files) ?? [] }
}

/** The phase may use all of its attempts again. Entries in doubt are sent again, with the same idempotency key. */
function retry(machine: Machine, live: LiveRun, position: number, entries: readonly string[]): void {
  for (const entry of entries) {
    machine.store.receipts.clear(live.id, position, entry, null)
    machine.note({ run: live.row, team: live.team, position, kind: 'receipt', entry })
  }
  machine.postpone(live, position, machine.world.now(), 0, null)
  // The phase never started because its `when` could not be evaluated: evaluate that again.
  if (live.phases[position]!.attempt === 0) machine.consider(live, position)
}
