// Reviews, as a hub has them: the questions that runs ask people.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { READ } from '../access.ts'
import { atHub } from '../call.ts'
import { listOf } from '../page.ts'
import { Uuid } from '../parts.ts'
import { ORDER_FATE, Review, withMore } from '../records/hub-records.ts'
import { WRITE } from './dispatch.ts'
import { DecideReview, ListReviews } from './reviews.ts'

export const ListHubReviews = atHub(ListReviews, {
  hub: { user: READ },
  body: closed({ ...ListReviews.body.properties, realm_id: Type.Optional(Uuid) }),
  data: listOf('reviews', Review),
})
export const DecideHubReview = atHub(DecideReview, {
  hub: { user: WRITE },
  data: withMore(Review, { job_id: Type.String(), ...ORDER_FATE }),
})
