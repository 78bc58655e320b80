// Reviews: the questions that runs ask people. The decision is sent to the daemon that has the run.

import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import type { JsonObject } from '../../json.ts'
import { matches } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { inputsFor } from '../../team/team.ts'
import { within } from '../../wire/budget.ts'
import { DecideHubReview, ListHubReviews } from '../../wire/calls/hub-runs.ts'
import { choicesOf } from '../../wire/choices.ts'
import { page } from '../../wire/page.ts'
import { Field } from '../../wire/records/forms.ts'
import { ReviewNext, ReviewShown } from '../../wire/records/review-records.ts'
import { answer } from '../access/answer.ts'
import { hubKit } from '../access/kit.ts'
import { realmsReached } from '../access/token-reach.ts'
import type { Hub } from '../core/hub.ts'
import { beginsWith, countOf } from '../core/list-total.ts'
import { orderRun } from '../queue/orders.ts'
import { ownerOf, withLargeValues } from '../reports/large-values.ts'
import { readableRun } from '../reports/runs.ts'

type ReviewRow = Tables['reviews']['$inferSelect']

export function reviews(hub: Hub) {
  const { store } = hub
  const { reviews, realms, runs } = store

  return resource('reviews', hubKit(hub), [
    answer(ListHubReviews, async ({ body, caller }) => {
      if (body.realm_id) await caller.realm(body.realm_id)
      const reached = store.db.select({ id: realms.id }).from(realms).where(realmsReached(store, caller))
      const where = and(
        body.realm_id ? eq(reviews.realm_id, body.realm_id) : inArray(reviews.realm_id, reached),
        body.run_id ? eq(reviews.run_id, body.run_id) : undefined,
        body.state ? eq(reviews.state, body.state as 'pending') : undefined,
        body.review_id ? eq(reviews.id, body.review_id) : undefined,
        body.begins ? beginsWith(reviews.id, body.begins) : undefined,
      )
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ review: reviews, team: runs.team })
        .from(reviews)
        .leftJoin(runs, eq(runs.run_id, reviews.run_id))
        .where(where)
        .orderBy(sql`${reviews.placed_at} DESC NULLS LAST`, desc(reviews.created_at), desc(reviews.id))
        .limit(limit)
        .offset(offset)
      const found = rows.map(({ review }) => review)
      const shown = body.review_id ? await Promise.all(found.map(row => wholeReview(store, row))) : found
      const teams = new Map(rows.map(({ review, team }) => [review.id, team]))
      const lacks = await lacksOf(store, shown)
      const records = shown.map(row => {
        const team = teams.get(row.id)
        return { ...reviewRecord(row), ...(team && { team }), lacks: lacks.get(row.id) ?? null }
      })
      return { reviews: within(records), total: await countOf(store.db, reviews, where) }
    }),
    answer(DecideHubReview, async ({ body: { review_id, decision, comment, values }, caller }) => {
      const [found] = await store.db.select().from(reviews).where(eq(reviews.id, review_id))
      const missing = new CadreError('not_found', `no review ${review_id} that you may see`)
      if (!found) throw missing
      await readableRun(hub, caller, found.run_id).catch(error => {
        throw error instanceof CadreError && error.code === 'not_found' ? missing : error
      })
      const review = await wholeReview(store, found)
      checkAnswer(review, decision, caller.user.username)
      if (decision === 'approve') checkForm(review, (values ?? {}) as JsonObject)
      const payload: JsonObject = {
        review_id,
        decision,
        by: caller.user.username,
        ...(comment !== undefined && { comment }),
        ...(values && { values: values as JsonObject }),
      }
      const { job_id, already_waits } = await orderRun(hub, caller, review.run_id, 'decide', payload)
      return { ...reviewRecord(review), id: review_id, job_id, ...(already_waits && { already_waits }) }
    }),
  ])
}

const wholeReview = async (store: Store, row: ReviewRow): Promise<ReviewRow> => ({
  ...(await withLargeValues(store, store.db, ownerOf.review(row.id), row)),
  beside: null,
})

/** A review as replies have it: with the bytes of what is too large for a list. */
function reviewRecord({ beside, placed_at: _, keeps_next: __, ...review }: ReviewRow) {
  const bytes = Object.entries(beside ?? {}).filter(([name]) => name !== 'reason')
  const { entries, inputs, prompt, reason } = review
  const shown = {
    entries: entries.map(entry => (typeof entry === 'string' ? entry : JSON.stringify(entry))),
    form: matches(Form, inputs) ? inputs : [],
    next: nextIn(review),
    shown: matches(ReviewShown, review.shown) ? review.shown : null,
    phase: review.phase || null,
    prompt: bytes.some(([name]) => name === 'prompt') ? null : (prompt ?? ''),
    reason: reason ?? '',
  }
  return { ...review, ...shown, ...Object.fromEntries(bytes.map(([name, size]) => [`${name}_bytes`, size])) }
}

/** What an approval leads to, if this hub knows all of what its daemon says of it. */
const nextIn = ({ next }: Pick<ReviewRow, 'next'>): ReviewNext | null => (matches(ReviewNext, next) ? next : null)

/** Why nobody can say here what the approval of these reviews leads to, in words, by their ids. */
async function lacksOf({ db, runs, daemons }: Store, rows: readonly ReviewRow[]): Promise<Map<string, string>> {
  const lacking = rows.filter(row => {
    const isKnown = nextIn(row) !== null || row.beside?.next !== undefined
    return row.state === 'pending' && !isKnown && (row.keeps_next !== false || row.next !== null)
  })
  if (lacking.length === 0) return new Map()
  const ids = [...new Set(lacking.map(({ run_id }) => run_id))]
  const found = await db
    .select({ run_id: runs.run_id, name: daemons.name })
    .from(runs)
    .innerJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(inArray(runs.run_id, ids))
  const names = new Map(found.map(({ run_id, name }) => [run_id, name]))
  return new Map(
    lacking.map(({ id, run_id, next, keeps_next }) => {
      const name = names.get(run_id)
      const daemon = name === undefined ? 'its daemon' : `the daemon ${name}`
      if (next !== null) return [id, `${daemon} reports it in a form that this hub does not know`]
      return [id, keeps_next ? `${daemon} knows it and does not report it` : `${daemon} is too old to report it`]
    }),
  )
}

function checkAnswer(review: ReviewRow, decision: string, username: string): void {
  if (review.state === 'decided') {
    throw new CadreError('invalid_state', `the review is already decided: ${review.decision} by ${review.decided_by}`)
  }
  const allowed: readonly string[] = choicesOf(review.kind)
  if (allowed.length === 0) {
    throw new CadreError(
      'invalid_request',
      `this hub does not know reviews of the kind ${review.kind}: upgrade it, or decide on the machine of the daemon`,
    )
  }
  if (!allowed.includes(decision)) {
    throw new CadreError('invalid_request', `the decision of a ${review.kind} must be one of ${allowed.join(', ')}`, {
      details: [{ path: '/decision', message: `must be one of ${allowed.join(', ')}` }],
    })
  }
  const { reviewers } = review
  if (reviewers.length === 0 || reviewers.includes('any') || reviewers.includes(username)) return
  throw new CadreError('forbidden', `this review is for ${reviewers.join(', ')}`)
}

/** The form of a gate, with the kinds of fields that this hub knows. */
const Form = Type.Array(Field)

/**
 * Throws for answers that the daemon would refuse. A form that only the daemon understands is not checked here, because
 * the daemon checks the answer anyway.
 */
function checkForm({ reviewers, inputs }: ReviewRow, given: JsonObject): void {
  const isReported = reviewers.length > 0 || inputs.length > 0
  if (!isReported || !matches(Form, inputs)) return
  const { problems } = inputsFor(inputs, given)
  if (problems.length === 0) return
  const details = problems.map(({ path, message }) => ({ path: path.replace('/inputs/', '/values/'), message }))
  const list = details.map(({ message }) => message).join('; ')
  throw new CadreError('invalid_request', `the answer does not fit the form: ${list}`, { details })
}
