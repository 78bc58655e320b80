// The questions that the runs of a daemon ask people, and their answers.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { READER_OF_RUN } from '../access.ts'
import { call } from '../call.ts'
import { EVERY_CHOICE } from '../choices.ts'
import { listBody, listOf } from '../page.ts'
import { AnyObject, WrittenId } from '../parts.ts'
import { AskedReview, ReviewRecord } from '../records/review-records.ts'

export const ListReviews = call('/v1/reviews/list', {
  summary: 'Reviews, newest first; the one that `review_id` names is whole',
  daemon: READER_OF_RUN,
  body: listBody({
    run_id: Type.Optional(WrittenId),
    // A string for clients, which send what a person wrote.
    state: Type.Optional(Type.Unsafe<string>(Type.Enum(['pending', 'decided']))),
    begins: Type.Optional(WrittenId),
    review_id: Type.Optional(WrittenId),
  }),
  data: listOf('reviews', AskedReview),
})
export const DecideReview = call('/v1/reviews/decide', {
  summary: 'Answer a review',
  daemon: { local: 'token', remote: 'execute', ofRun: true },
  body: closed({
    review_id: WrittenId,
    decision: Type.Enum([...EVERY_CHOICE]),
    comment: Type.Optional(Type.String({ maxLength: 10_000 })),
    values: Type.Optional(AnyObject),
  }),
  data: ReviewRecord,
})
