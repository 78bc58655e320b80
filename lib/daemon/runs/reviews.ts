// Reviews as they are shown to people: with the name of their phase. Only those may answer whom the team names, or of the
// start of a run the environment.

import { CadreError } from '../../error.ts'
import type { ListedReview, Store } from '../../run/engine.ts'
import { type Decision, type ReviewRecord, type ReviewRow, reviewRecord, startReviewers } from '../../run/engine.ts'
import { type Bundle, type GatePhase, inputsFor, type Phase, readersOf, reviewOf, type Team } from '../../team/team.ts'
import { within } from '../../wire/budget.ts'
import type { AskedReview } from '../../wire/records/review-records.ts'
import type { Daemon } from './daemon.ts'

/** What a review needs from an engine, or from a database without one. */
export interface ReviewSource {
  readonly store: Store
  /** The lived time of the home; absent while no process lives. */
  readonly lived?: number
  bundle(id: string): Bundle
}

type Filter = Parameters<Store['reviews']['list']>[0]

export function listReviewRecords(source: ReviewSource, filter: Filter): { reviews: AskedReview[]; total: number } {
  const { rows, total } = source.store.reviews.list(filter)
  const asked = (row: (typeof rows)[number]): AskedReview => {
    const phase = phaseOf(source, row)
    const form = asksOf(phase, row.kind)?.inputs ?? []
    const { lived = null } = source
    const record = reviewRecord({ ...row, prompt: row.prompt ?? '' }, phase?.name ?? null, row.run_name, lived)
    const isCompletable = phase && row.kind === 'escalation' && row.state === 'pending'
    return {
      ...record,
      team: row.team,
      ...bytesOf(row),
      form: [...form],
      reviewers: [...(asksOf(phase, row.kind)?.reviewers ?? reviewersOf(source, row))],
      ...(isCompletable && { readers: readersOf(teamOf(source, row), phase.name) }),
    }
  }
  return { reviews: within(rows.map(asked)), total }
}

/** The bytes of what a list has no room for. */
function bytesOf(row: ListedReview) {
  return Object.fromEntries(
    (['prompt', 'entries', 'next', 'shown', 'comment'] as const).flatMap(name =>
      row[name] === null && row[`${name}_bytes`] !== null ? [[`${name}_bytes`, row[`${name}_bytes`]]] : [],
    ),
  )
}

/** The review with this id. Throws `not_found`. */
export function findReview({ store }: Pick<ReviewSource, 'store'>, id: string): ReviewRow {
  const row = store.reviews.get(id)
  if (!row) throw new CadreError('not_found', `there is no review ${id}`)
  return row
}

/**
 * Applies an answer after its run has been continued, and returns the review as it is then. Throws `forbidden` for a
 * review that asks other people, `invalid_request` when the answer does not fit the form of the gate, and whatever the
 * engine throws.
 */
export async function answerReview(
  daemon: Pick<Daemon, 'engine' | 'openRuns' | 'audit'>,
  review: ReviewRow,
  decision: Decision,
  actor: string,
): Promise<ReviewRecord> {
  const { engine } = daemon
  const phase = phaseOf(engine, review)
  const form = asksOf(phase, review.kind)
  const reviewers = form?.reviewers ?? reviewersOf(engine, review)
  if (!reviewers.some(name => name === 'any' || name === decision.by)) {
    const asking = form ? 'this gate' : 'the environment of this run'
    throw new CadreError('forbidden', `${asking} asks ${reviewers.join(', ')}; you are ${decision.by}`)
  }
  const answer = form && decision.decision === 'approve' ? { ...decision, values: filledIn(form, decision) } : decision
  await daemon.openRuns.continueTree(review.run_id)
  const target = `${review.id}: ${decision.decision}, run ${review.run_id}`
  await engine.decide(review.id, answer, () => daemon.audit.write({ actor, action: 'reviews/decide', target }))
  const { run_name } = engine.record(review.run_id)
  return reviewRecord(findReview(engine, review.id), phase?.name ?? null, run_name, engine.lived)
}

/** How a gate asks; undefined for other reviews. */
const asksOf = (phase: Phase | null, kind: ReviewRow['kind']) =>
  phase && kind === 'gate' ? reviewOf(phase) : undefined

/** Who may answer a review that is none of a gate. */
function reviewersOf(
  { store }: Pick<ReviewSource, 'store'>,
  { kind, run_id }: Pick<ReviewRow, 'kind' | 'run_id'>,
): readonly string[] {
  return kind === 'start' ? startReviewers(store.runs.get(run_id)!) : ['any']
}

function filledIn({ inputs }: NonNullable<GatePhase['review']>, { values: given = {} }: Decision) {
  const { values, problems } = inputsFor(inputs, given)
  if (problems.length === 0) return values
  const details = problems.map(({ path, message }) => ({ path: path.replace('/inputs/', '/values/'), message }))
  const list = details.map(({ message }) => message).join('; ')
  throw new CadreError('invalid_request', `the answer does not fit the form: ${list}`, { details })
}

/** Null for the review of the start of a run. */
function phaseOf(source: ReviewSource, { run_id, position }: Pick<ReviewRow, 'run_id' | 'position'>): Phase | null {
  return teamOf(source, { run_id }).phases[position] ?? null
}

function teamOf(source: ReviewSource, { run_id }: Pick<ReviewRow, 'run_id'>): Team {
  const row = source.store.runs.get(run_id)!
  return source.bundle(row.bundle_id).team(row.team_key)
}
