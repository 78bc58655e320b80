// The questions that runs ask people.

import { ListReviews } from '../../wire/calls/reviews.ts'
import type { AskedReview } from '../../wire/records/run-records.ts'
import { call } from '../kit/api.ts'
import { Empty, Failure, useLoaded } from '../kit/parts.tsx'
import { route, to } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { AskedAbout } from './asked-about.tsx'

const REFRESH_MS = 2_000

/** The pending reviews, for the inbox and for the number beside its link. */
export const usePendingReviews = () =>
  useLoaded('waiting', () => call(ListReviews, { state: 'pending', limit: 100 }), REFRESH_MS)

export function Reviews() {
  const decided = route.value.query.get('state') === 'decided'
  return (
    <main>
      <header class="top">
        <h1>Reviews</h1>
      </header>
      <nav class="tabs" aria-label="Reviews">
        <a href={to('reviews')} aria-current={decided ? undefined : 'page'}>
          Waiting
        </a>
        <a href={`${to('reviews')}?state=decided`} aria-current={decided ? 'page' : undefined}>
          Decided
        </a>
      </nav>
      {decided ? <DecidedReviews /> : <PendingReviews />}
    </main>
  )
}

function PendingReviews() {
  const { data, error, again } = usePendingReviews()
  if (!data) return <Failure of={error} />
  return (
    <>
      <Failure of={error} />
      {data.reviews.length === 0 && (
        <Empty>
          <p>Nothing waits for you.</p>
          <p>
            A phase of the type <code>gate</code>, or one with <code>on_failure: escalate</code>, asks here.
          </p>
        </Empty>
      )}
      {data.reviews.map(review => (
        <ReviewCard key={review.id} review={review} done={again} />
      ))}
      {data.total > data.reviews.length && <p class="quiet">{data.total - data.reviews.length} more wait.</p>}
    </>
  )
}

function DecidedReviews() {
  const { data, error } = useLoaded('decided', () => call(ListReviews, { state: 'decided', limit: 100 }))
  if (!data) return <Failure of={error} />
  if (data.reviews.length === 0) {
    return (
      <Empty>
        <p>Nothing was decided yet.</p>
      </Empty>
    )
  }
  return (
    <ul class="chain">
      {data.reviews.map(({ id, run_id, run_name, phase, decision, decided_by, decided_at, comment }) => (
        <li key={id}>
          <div>
            <AskedAbout review={{ run_id, run_name, phase }} />
            <p class="quiet wrap">
              {decision} by {decided_by ?? 'nobody'}, <When at={decided_at} />
              {comment && `: ${comment}`}
            </p>
          </div>
        </li>
      ))}
    </ul>
  )
}

/** One pending review. `done` is called after the answer. Its code is loaded when something waits. */
export function ReviewCard(props: { review: AskedReview; done(): unknown }) {
  const { data, error } = useLoaded('review', () => import('./review-card.tsx'))
  return data ? <data.ReviewCard {...props} /> : <Failure of={error} />
}
