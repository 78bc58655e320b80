// The answer to a review, which decides how its phase continues. It comes from a person, or from the time-out of a
// gate.

import type { AgentResult, FileRecord } from '../../../agent/agent-context.ts'
import { CadreError } from '../../../error.ts'
import type { Json, JsonObject } from '../../../json.ts'
import { type Masked, maskedJson, maskedText, recordedText } from '../../../secrets/masked.ts'
import { reviewOf } from '../../../team/team.ts'
import { CHOICES, type Choice } from '../../../wire/choices.ts'
import { JsonText, type LiveRun, parse, type ReviewRow } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { kindOf } from '../kinds/kinds.ts'
import { considerPhase, endPhase } from '../phase/phase-end.ts'
import { noteReview, openReview } from '../phase/question.ts'
import { postponePhase } from '../phase/transition.ts'
import { runApproved } from '../run/begin.ts'
import type { EngineState } from '../state/state.ts'
import { takeSteps } from './step.ts'
import { stopRun } from './stop.ts'

export interface Decision {
  decision: Choice
  by: string
  comment?: string
  values?: JsonObject
}

export { CHOICES }

/** A gate that nobody answered in time becomes an escalation, and a run that nobody approved in time ends. */
export function reviewOverdue(engine: EngineState, live: LiveRun, review: ReviewRow): void {
  const { position } = review
  if (review.kind === 'start') return rejectRun(engine, live, 'nobody approved it in time')
  const prompt = recordedText(review.prompt)
  const reason = 'review_timeout'
  openReview(engine, live, position, { kind: 'escalation', reason, prompt, entries: [] })
  engine.store.phases.setReason(live.id, position, reason)
  live.phases[position]!.reason = reason
  engine.notes.changed(live, position)
}

/** Applies a person's answer. Throws `not_found`, `invalid_state` when it was answered already, `invalid_request`. */
export function decide(engine: EngineState, reviewId: string, given: Decision): void {
  const review = engine.store.reviews.get(reviewId)
  if (!review) throw new CadreError('not_found', `there is no review ${reviewId}`)
  const live = engine.lives.get(review.run_id)
  if (review.state !== 'pending' || !live) {
    throw new CadreError(
      'invalid_state',
      `review ${reviewId} has already been decided (${review.decision ?? 'run ended'}${review.decided_by === null ? '' : ` by ${review.decided_by}`})`,
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
  const answer = engine.world.mask(live.root, given)
  const { decision, by, comment = null } = answer
  const values = answer.values ? maskedJson(answer.values) : null
  engine.store.reviews.decide(reviewId, { decision, by, comment, values, at: engine.world.now() })
  noteReview(engine, live, review.position)
  applyDecision(engine, live, review, answer)
  takeSteps(engine, live.root)
}

function applyDecision(
  engine: EngineState,
  live: LiveRun,
  review: ReviewRow,
  { decision, by, comment, values }: Omit<Masked<Decision>, 'decision'> & Pick<Decision, 'decision'>,
): void {
  const { position } = review
  if (review.kind === 'start') {
    if (decision === 'approve') return runApproved(engine, live)
    return rejectRun(engine, live, `rejected by ${by}${comment ? `: ${comment}` : ''}`)
  }
  const data: Masked<Json> = { ...emptyForm(live, position), ...values }
  const said = (verb: string) => `${verb} by ${by}${comment ? `: ${comment}` : ''}`
  switch (decision) {
    case 'approve':
    case 'complete': {
      const entries: string[] = JSON.parse(review.entries)
      const verb = decision === 'approve' ? maskedText`approve` : maskedText`complete`
      const result = { text: maskedText`${verb} by ${by}`, data }
      for (const entry of entries) vouchFor(engine, live, position, entry, result)
      const phase = live.phase(position)
      const rest = kindOf(phase).attempts?.entriesAfter(phase, entries) ?? []
      if (rest.length > 0) return repeatPhase(engine, live, position)
      return endPhase(engine, live, position, 'completed', { ...result, files: keptFiles(engine, live, position) })
    }
    case 'reject': {
      const error = { code: 'rejected', message: said('rejected') }
      const files = keptFiles(engine, live, position)
      return endPhase(engine, live, position, 'failed', { reason: 'rejected', error, files })
    }
    case 'fail': {
      const error = { code: 'person', message: said('failed') }
      return endPhase(engine, live, position, 'failed', {
        ...keptResult(engine, live, position),
        reason: 'person',
        error,
      })
    }
    case 'skip':
      return endPhase(engine, live, position, 'skipped', { reason: 'person' })
    case 'retry':
      retryPhase(engine, live, position, JSON.parse(review.entries))
  }
}

/** Ends a run that may not begin. None of its phases executes, `always` phases included. */
function rejectRun(engine: EngineState, live: LiveRun, message: string): void {
  stopRun(engine, live, { state: 'cancelled', reason: 'rejected', error: { code: 'rejected', message } })
}

/** Null for each field of a gate's form, so that an expression can name one that was left empty. */
function emptyForm(live: LiveRun, position: number): Record<string, null> {
  const fields = reviewOf(live.phase(position))?.inputs ?? []
  return Object.fromEntries(fields.map(({ name }) => [name, null]))
}

/** What the commands of a gate wrote. */
const keptFiles = ({ store }: EngineState, live: LiveRun, position: number): readonly FileRecord[] =>
  (reviewOf(live.phase(position)) && parse<FileRecord[]>(store.phases.result(live.id, position).files)) || []

/** The result that the phase had when a person was asked. */
function keptResult({ store }: EngineState, live: LiveRun, position: number): PhaseChange {
  const { text, data, files } = store.phases.result(live.id, position)
  return { text, data: data === null ? null : new JsonText(data), files: parse(files) ?? [] }
}

/**
 * Retries a phase, which may then use all of its attempts again. Entries in doubt are sent again with the same
 * idempotency key.
 */
function retryPhase(engine: EngineState, live: LiveRun, position: number, entries: readonly string[]): void {
  for (const entry of entries) {
    engine.store.receipts.order({ runId: live.id, position, entry })
    noteReceipt(engine, live, position, entry)
  }
  repeatPhase(engine, live, position)
}

/** A person has seen that an entry in doubt is there. */
function vouchFor(
  engine: EngineState,
  live: LiveRun,
  position: number,
  entry: string,
  result: Masked<AgentResult>,
): void {
  const { looks, receipts } = engine.store
  const id = { runId: live.id, position, entry }
  receipts.vouch(id, result, engine.world.now())
  // An entry that was sent once exists once. Of an entry that was sent twice, the other request may still arrive.
  if (receipts.get(id)?.presumed_at === null) looks.drop(id)
  noteReceipt(engine, live, position, entry)
}

function noteReceipt({ notes }: EngineState, live: LiveRun, position: number, entry: string): void {
  notes.add({ run: live.row, team: live.team, position, kind: 'receipt', entry })
}

function repeatPhase(engine: EngineState, live: LiveRun, position: number): void {
  postponePhase(engine, live, position, engine.world.lived(), 0, null)
  // The phase never started because its `when` could not be evaluated, so `when` is evaluated again.
  if (live.phases[position]!.attempt === 0) considerPhase(engine, live, position)
}
