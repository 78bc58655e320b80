// Questions to people. A gate asks for leave; an escalation asks what happened, or what to do about a failure.
// One review a phase and attempt; the answer decides how the phase goes on.

import { CadreError } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import { clearReceipt } from './receipts.ts'
import { parse, type RunError } from './records.ts'
import type { RunStore } from './store.ts'

export interface Question {
  kind: 'gate' | 'escalation'
  reason: string
  prompt: string
  /** Entries whose fate is unknown. */
  entries: string[]
  error?: RunError
  /** Milliseconds until the question escalates. */
  timeout?: number
}

export interface Decision {
  decision: 'approve' | 'reject' | 'retry' | 'skip' | 'complete' | 'fail'
  by: string
  comment?: string
  values?: JsonObject
}

export interface ReviewRow {
  id: string
  run_id: string
  position: number
  attempt: number
  kind: 'gate' | 'escalation'
  reason: string
  prompt: string
  entries: string
  state: 'pending' | 'decided'
  decision: string | null
  decided_by: string | null
  comment: string | null
  input: string | null
  deadline: number | null
  created_at: number
  decided_at: number | null
}

/** As `reviews/list` shows it. */
export interface ReviewRecord {
  id: string
  run_id: string
  run_name: string | null
  phase: string
  entries: string[]
  kind: 'gate' | 'escalation'
  reason: string
  prompt: string
  state: 'pending' | 'decided'
  decision: string | null
  decided_by: string | null
  comment: string | null
  created_at: number
  decided_at: number | null
}

export const CHOICES: Record<'gate' | 'escalation', readonly Decision['decision'][]> = {
  gate: ['approve', 'reject'],
  escalation: ['retry', 'skip', 'complete', 'fail'],
}

export function openReview(machine: Machine, live: LiveRun, position: number, question: Question): void {
  const now = machine.host.now()
  const deadline = question.timeout === undefined ? null : now + question.timeout
  const { attempt } = live.phases[position]!
  const id = crypto.randomUUID()
  machine.store.db
    .query(
      `INSERT INTO reviews (id, run_id, position, attempt, kind, reason, prompt, entries, state, deadline, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)
       ON CONFLICT (run_id, position, attempt) DO UPDATE SET
         kind = excluded.kind, reason = excluded.reason, prompt = excluded.prompt, entries = excluded.entries,
         state = 'pending', decision = NULL, decided_by = NULL, comment = NULL, decided_at = NULL,
         deadline = excluded.deadline`,
    )
    .run(
      id,
      live.id,
      position,
      attempt,
      question.kind,
      question.reason,
      question.prompt,
      JSON.stringify(question.entries),
      deadline,
      now,
    )
  let asked: number | null = position
  for (let run: LiveRun | null = live; run; run = run.parent) {
    machine.host.event(run, 'on_escalate', asked)
    asked = run.row.parent_position
  }
  machine.host.reviewChanged(live, position)
  if (deadline !== null) watchReview(machine, live, position, deadline)
}

/** A gate that nobody answers in time becomes an escalation. */
export function watchReview(machine: Machine, live: LiveRun, position: number, deadline: number): void {
  const { id } = live
  const { attempt } = live.phases[position]!
  machine.host.schedule(deadline, () => {
    const current = machine.lives.get(id)
    const review = current && pendingReview(machine.store, id, position)
    if (!current || review?.deadline !== deadline || review.attempt !== attempt) return
    openReview(machine, current, position, {
      kind: 'escalation',
      reason: 'review_timeout',
      prompt: review.prompt,
      entries: [],
    })
    machine.store.setPhaseReason(id, position, 'review_timeout')
    current.phases[position]!.reason = 'review_timeout'
    machine.host.changed(current, position)
  })
}

export function pendingReview(store: RunStore, runId: string, position: number): ReviewRow | null {
  return store.db
    .query<ReviewRow, [string, number]>("SELECT * FROM reviews WHERE run_id = ? AND position = ? AND state = 'pending'")
    .get(runId, position)
}

export function reviewsOf(store: RunStore, runId: string, position: number): ReviewRow[] {
  return store.db
    .query<ReviewRow, [string, number]>('SELECT * FROM reviews WHERE run_id = ? AND position = ?')
    .all(runId, position)
}

/** Nobody is asked any more: the run ends for another reason. */
export function closeReview(machine: Machine, live: LiveRun, position: number): void {
  machine.store.db
    .query(
      `UPDATE reviews SET state = 'decided', decision = 'cancelled', decided_at = ?3
       WHERE run_id = ?1 AND position = ?2 AND state = 'pending'`,
    )
    .run(live.id, position, machine.host.now())
  machine.host.reviewChanged(live, position)
}

/** Applies a person's answer. Throws `not_found`, `invalid_state` when it was answered already, `invalid_request`. */
export function decide(machine: Machine, reviewId: string, given: Decision): void {
  const review = machine.store.db.query<ReviewRow, [string]>('SELECT * FROM reviews WHERE id = ?').get(reviewId)
  if (!review) throw new CadreError('not_found', `no review ${reviewId}`)
  const live = machine.lives.get(review.run_id)
  if (review.state !== 'pending' || !live) {
    throw new CadreError('invalid_state', `review ${reviewId} was decided already (${review.decision ?? 'run ended'})`)
  }
  const answer = machine.mask(live, given)
  if (!CHOICES[review.kind].includes(answer.decision)) {
    throw new CadreError(
      'invalid_request',
      `a review of kind ${review.kind} takes ${CHOICES[review.kind].join(', ')}, not ${answer.decision}`,
      { details: [{ path: '/decision', message: `expected one of ${CHOICES[review.kind].join(', ')}` }] },
    )
  }
  machine.store.db
    .query(
      `UPDATE reviews SET state = 'decided', decision = ?2, decided_by = ?3, comment = ?4, input = ?5, decided_at = ?6
       WHERE id = ?1 AND state = 'pending'`,
    )
    .run(
      reviewId,
      answer.decision,
      answer.by,
      answer.comment ?? null,
      answer.values ? JSON.stringify(answer.values) : null,
      machine.host.now(),
    )
  const { position } = review
  machine.host.reviewChanged(live, position)
  const entries: string[] = JSON.parse(review.entries)
  const data: Json = answer.values ?? {}
  switch (answer.decision) {
    case 'approve':
    case 'complete':
      machine.endPhase(live, position, 'completed', { text: `${answer.decision} by ${answer.by}`, data, files: [] })
      break
    case 'reject':
    case 'fail':
      machine.endPhase(live, position, 'failed', {
        reason: answer.decision === 'reject' ? 'rejected' : 'person',
        error: {
          code: answer.decision === 'reject' ? 'rejected' : 'person',
          message: `${answer.decision === 'reject' ? 'rejected' : 'failed'} by ${answer.by}${answer.comment ? `: ${answer.comment}` : ''}`,
        },
      })
      break
    case 'skip':
      machine.endPhase(live, position, 'skipped', { reason: 'person' })
      break
    case 'retry':
      for (const entry of entries) {
        clearReceipt(machine.store, live.id, position, entry, null)
        machine.host.receiptChanged(live, position, entry)
      }
      machine.resumePhase(live, position)
  }
  machine.drain()
}

export function listReviews(
  store: RunStore,
  filter: { state?: string; runId?: string; limit: number; offset: number },
) {
  const where = `WHERE (?1 IS NULL OR reviews.state = ?1) AND (?2 IS NULL OR reviews.run_id = ?2)`
  const rows = store.db
    .query<ReviewRow & { run_name: string | null; call_path: string }, (string | number | null)[]>(
      `SELECT reviews.*, runs.run_name FROM reviews JOIN runs ON runs.id = reviews.run_id ${where}
       ORDER BY reviews.created_at DESC, reviews.id LIMIT ?3 OFFSET ?4`,
    )
    .all(filter.state ?? null, filter.runId ?? null, filter.limit, filter.offset)
  const { total } = store.db
    .query<{ total: number }, (string | null)[]>(`SELECT count(*) AS total FROM reviews ${where}`)
    .get(filter.state ?? null, filter.runId ?? null)!
  return { rows, total }
}

export function reviewRecord(row: ReviewRow, phase: string, runName: string | null): ReviewRecord {
  const { id, run_id, kind, reason, prompt, state, decision, decided_by, comment, created_at, decided_at } = row
  return {
    id,
    run_id,
    run_name: runName,
    phase,
    entries: parse<string[]>(row.entries) ?? [],
    kind,
    reason,
    prompt,
    state,
    decision,
    decided_by,
    comment,
    created_at,
    decided_at,
  }
}
