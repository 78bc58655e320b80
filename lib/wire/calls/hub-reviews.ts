// Reviews, as a hub has them: the questions that runs ask people.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { EVERY_CHOICE } from '../choices.ts'
import { listBody, listOf } from '../page.ts'
import { Uuid, WrittenId } from '../parts.ts'
import { ORDER_FATE, Review, withMore } from '../records/hub-records.ts'
import { WRITE } from './dispatch.ts'
import { READ } from './hub-runs.ts'

export const ListHubReviews = call('/v1/reviews/list', {
  summary: 'List reviews, newest first; the one that `review_id` names is whole',
  hub: { user: READ },
  body: listBody({
    realm_id: Type.Optional(Uuid),
    run_id: Type.Optional(Uuid),
    // A string for clients, which send what a person wrote.
    state: Type.Optional(Type.Unsafe<string>(Type.Enum(['pending', 'decided']))),
    review_id: Type.Optional(Uuid),
    /** The beginning of an id. */
    begins: Type.Optional(WrittenId),
  }),
  data: listOf('reviews', Review),
})
export const DecideHubReview = call('/v1/reviews/decide', {
  summary: 'Answer a review',
  hub: { user: WRITE },
  body: closed({
    review_id: Uuid,
    decision: Type.Enum([...EVERY_CHOICE]),
    comment: Type.Optional(Type.String({ maxLength: 10_000 })),
    values: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
  data: withMore(Review, { job_id: Type.String(), ...ORDER_FATE }),
})
