// reviews/*: the questions that runs ask people, and their answers.

import { Elysia } from 'elysia'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { DecideReview, ListReviews } from '../../wire/calls/daemon-calls.ts'
import { EVERY_CHOICE } from '../../wire/choices.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { answerReview, findReview, listReviewRecords } from '../runs/reviews.ts'
import { PAGE, page, RunId } from './bodies.ts'
import { target } from './runs.ts'

const List = closed({
  ...PAGE,
  run_id: Type.Optional(RunId),
  state: Type.Optional(Type.Enum(['pending', 'decided'])),
  begins: Type.Optional(RunId),
  review_id: Type.Optional(RunId),
})
const Decide = closed({
  review_id: Type.String({ minLength: 1, maxLength: 100 }),
  decision: Type.Enum([...EVERY_CHOICE]),
  comment: Type.Optional(Type.String({ maxLength: 10_000 })),
  values: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})

export const reviews = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'reviews', prefix: '/v1/reviews' })
    .use(kit)
    .post(
      '/list',
      ({ body, caller }) => {
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
      },
      {
        access: { local: 'open', remote: 'access', ofRun: true },
        body: List,
        data: ListReviews.data,
        detail: { summary: 'Reviews, newest first; the one that `review_id` names is whole' },
      },
    )
    .post(
      '/decide',
      async ({ body, caller }) => {
        const { review_id: id, decision, comment, values } = body
        const review = findReview(daemon.engine, id)
        target(daemon, caller, review.run_id)
        const answer = {
          decision,
          by: caller.name,
          ...(comment !== undefined && { comment }),
          ...(values && { values: values as JsonObject }),
        }
        return answerReview(daemon, review, answer, caller.actor)
      },
      {
        access: { local: 'token', remote: 'execute', ofRun: true },
        body: Decide,
        data: DecideReview.data,
        detail: { summary: 'Answer a review' },
      },
    )
