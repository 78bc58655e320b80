// The answer to a review, which decides how its phase continues. It comes from a person, or from the time-out of a
// gate.

import type { AgentResult } from '../../../agent/agent-context.ts'
import { CadreError } from '../../../error.ts'
import type { Json, JsonObject } from '../../../json.ts'
import { CHOICES, type Choice } from '../../../wire/choices.ts'
import { JsonText, type LiveRun, parse, type ReviewRow } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { entriesAfter, noteReview, openReview } from '../kinds/question.ts'
import { consider, endPhase } from '../kinds/settle.ts'
import type { Work } from '../state/state.ts'
import { postpone } from '../state/transition.ts'
import { follow } from './step.ts'

export interface Decision {
  decision: Choice
  by: string
  comment?: string
  values?: JsonObject
}

export { CHOICES }

/** A gate that nobody answered in time becomes an escalation. */
export function reviewOverdue(work: Work, live: LiveRun, review: ReviewRow): void {
  const { position, prompt } = review
  const reason = 'review_timeout'
  openReview(work, live, position, { kind: 'escalation', reason, prompt, entries: [] })
  work.store.phases.setReason(live.id, position, reason)
  live.phases[position]!.reason = reason
  work.notes.changed(live, position)
}

/** Applies a person's answer. Throws `not_found`, `invalid_state` when it was answered already, `invalid_request`. */
export function decide(work: Work, reviewId: string, given: Decision): void {
  const review = work.store.reviews.get(reviewId)
  if (!review) throw new CadreError('not_found', `there is no review ${reviewId}`)
  const live = work.lives.get(review.run_id)
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
  const answer = work.world.mask(live.root, given)
  const { decision, by, comment = null } = answer
  const values = answer.values ? JSON.stringify(answer.values) : null
  work.store.reviews.decide(reviewId, { decision, by, comment, values, at: work.world.now() })
  noteReview(work, live, review.position)
  apply(work, live, review, answer)
  follow(work, live.root)
}

function apply(work: Work, live: LiveRun, review: ReviewRow, { decision, by, comment, values }: Decision): void {
  const { position } = review
  const data: Json = { ...emptyForm(live, position), ...values }
  const said = (verb: string) => `${verb} by ${by}${comment ? `: ${comment}` : ''}`
  switch (decision) {
    case 'approve':
    case 'complete': {
      const entries: string[] = JSON.parse(review.entries)
      const result = { text: `${decision} by ${by}`, data }
      for (const entry of entries) vouch(work, live, position, entry, result)
      if (entriesAfter(live.phase(position), entries).length > 0) return repeat(work, live, position)
      return endPhase(work, live, position, 'completed', { ...result, files: [] })
    }
    case 'reject': {
      const error = { code: 'rejected', message: said('rejected') }
      return endPhase(work, live, position, 'failed', { reason: 'rejected', error })
    }
    case 'fail': {
      const error = { code: 'person', message: said('failed') }
      return endPhase(work, live, position, 'failed', { ...kept(work, live, position), reason: 'person', error })
    }
    case 'skip':
      return endPhase(work, live, position, 'skipped', { reason: 'person' })
    case 'retry':
      retry(work, live, position, JSON.parse(review.entries))
  }
}

/** Null for each field of a gate's form, so that an expression can name one that was left empty. */
function emptyForm(live: LiveRun, position: number): JsonObject {
  const phase = live.phase(position)
  const fields = phase.type === 'gate' ? (phase.review?.inputs ?? []) : []
  return Object.fromEntries(fields.map(({ name }) => [name, null]))
}

/** The result that the phase had when it was put before a person. */
function kept({ store }: Work, live: LiveRun, position: number): PhaseChange {
  const { text, data, files } = store.phases.result(live.id, position)
  return { text, data: data === null ? null : new JsonText(data), files: parse(files) ?? [] }
}

/**
 * Retries a phase, which may then use all of its attempts again. Entries in doubt are sent again with the same
 * idempotency key.
 */
function retry(work: Work, live: LiveRun, position: number, entries: readonly string[]): void {
  for (const entry of entries) {
    work.store.receipts.order({ runId: live.id, position, entry })
    noteReceipt(work, live, position, entry)
  }
  repeat(work, live, position)
}

/** A person has seen that an entry in doubt is there. */
function vouch(work: Work, live: LiveRun, position: number, entry: string, result: AgentResult): void {
  const { looks, receipts } = work.store
  const place = { runId: live.id, position, entry }
  receipts.vouch(place, result, work.world.now())
  // What was sent once only exists once. Otherwise what was sent before may still arrive.
  if (receipts.get(place)?.presumed_at === null) looks.drop(place)
  noteReceipt(work, live, position, entry)
}

function noteReceipt({ notes }: Work, live: LiveRun, position: number, entry: string): void {
  notes.add({ run: live.row, team: live.team, position, kind: 'receipt', entry })
}

function repeat(work: Work, live: LiveRun, position: number): void {
  postpone(work, live, position, work.world.now(), 0, null)
  // The phase never started because its `when` could not be evaluated, so `when` is evaluated again.
  if (live.phases[position]!.attempt === 0) consider(work, live, position)
}
