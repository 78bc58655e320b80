// reviews/*: the questions that runs ask people, and their answers.

import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { DecideReview, ListReviews } from '../../wire/calls/reviews.ts'
import { page } from '../../wire/page.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { answerReview, findReview, listReviewRecords } from '../runs/reviews.ts'
import { target } from './runs.ts'

export const reviews = (daemon: Daemon, kit: DaemonKit) =>
  resource('reviews', kit, [
    answer(ListReviews, ({ body, caller }) => {
      const { run_id: runId, state, begins, review_id: reviewId } = body
      if (runId !== undefined) target(daemon, caller, runId)
      else if (caller.runId !== null)
        throw new CadreError('forbidden', `the credential is for run ${caller.runId} only`)
      return listReviewRecords(daemon.engine, {
        ...page(body),
        ...(runId !== undefined && { runId }),
        ...(state !== undefined && { state }),
        ...(begins !== undefined && { begins }),
        ...(reviewId !== undefined && { reviewId }),
      })
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
