// reviews/*: the questions that runs ask people, and their answers.

import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { DecideReview, ListReviews } from '../../wire/calls/reviews.ts'
import { page } from '../../wire/page.ts'
import type { AskedReview } from '../../wire/records/review-records.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { leadsTo } from '../runs/review-next.ts'
import { answerReview, findReview, listReviewRecords } from '../runs/reviews.ts'
import { target } from './runs.ts'

export function reviews(daemon: Daemon, kit: DaemonKit) {
  /** With what its approval leads to, where nobody has found that out yet. */
  const told = async (review: AskedReview): Promise<AskedReview> => {
    if (review.next || review.state !== 'pending') return review
    return { ...review, next: daemon.mask(await leadsTo(daemon, findReview(daemon.engine, review.id))) }
  }
  return resource('reviews', kit, [
    answer(ListReviews, async ({ body, caller }) => {
      const { run_id: runId, state, begins, review_id: reviewId } = body
      if (runId !== undefined) target(daemon, caller, runId)
      else if (caller.runId !== null)
        throw new CadreError('forbidden', `the credential is for run ${caller.runId} only`)
      const filter = {
        ...page(body),
        ...(runId !== undefined && { runId }),
        ...(state !== undefined && { state }),
        ...(begins !== undefined && { begins }),
        ...(reviewId !== undefined && { reviewId }),
      }
      const found = listReviewRecords(daemon.engine, filter)
      return reviewId === undefined ? found : { ...found, reviews: await Promise.all(found.reviews.map(told)) }
    }),
    answer(DecideReview, async ({ body, caller }) => {
      const { review_id: id, decision, comment, values } = body
      const review = findReview(daemon.engine, id)
      target(daemon, caller, review.run_id)
      const given = {
        decision,
        by: caller.name,
        ...(comment !== undefined && { comment }),
        ...(values && { values }),
      }
      return answerReview(daemon, review, given, caller.actor)
    }),
  ])
}
