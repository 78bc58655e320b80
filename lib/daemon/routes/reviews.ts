// reviews/*: questions that runs put to people, and their answers.

import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'
import { answerReview, findReview, listReviewRecords } from '../reviews.ts'
import type { Routing } from '../routes.ts'
import { PAGE, page, RunId } from './bodies.ts'
import { target } from './runs.ts'

const DECISIONS = ['approve', 'reject', 'retry', 'skip', 'complete', 'fail'] as const

export function reviewRoutes({ api, daemon, guard }: Routing): void {
  const List = closed({
    ...PAGE,
    run_id: Type.Optional(RunId),
    state: Type.Optional(Type.Enum(['pending', 'decided'])),
  })
  const read = guard({ local: 'open', remote: 'access', ofRun: true })
  api.post('/v1/reviews/list', { access: read, body: List, summary: 'Reviews, newest first' }, ({ body, caller }) => {
    const { run_id: runId, state } = body
    if (runId !== undefined) target(daemon, { body: { run_id: runId }, caller })
    else if (caller.runId !== null) throw new CadreError('forbidden', `the credential is for run ${caller.runId} only`)
    return listReviewRecords(daemon.engine, {
      ...page(body),
      ...(runId !== undefined && { runId }),
      ...(state !== undefined && { state }),
    })
  })

  const Decide = closed({
    review_id: Type.String({ minLength: 1, maxLength: 100 }),
    decision: Type.Enum([...DECISIONS]),
    comment: Type.Optional(Type.String({ maxLength: 10_000 })),
    values: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  })
  const decide = guard({ local: 'token', remote: 'execute', ofRun: true })
  api.post(
    '/v1/reviews/decide',
    { access: decide, body: Decide, summary: 'Answer a review' },
    async ({ body, caller }) => {
      const { review_id: id, decision, comment, values } = body
      const review = findReview(daemon.engine, id)
      target(daemon, { body: { run_id: review.run_id }, caller })
      const { engine } = daemon
      return answerReview({ engine, takeUp: runId => daemon.takeUp(runId) }, review, {
        decision,
        by: caller.name,
        ...(comment !== undefined && { comment }),
        ...(values && { values: values as JsonObject }),
      })
    },
  )
}
