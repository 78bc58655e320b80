// The questions that runs ask people.

import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { ListReviews } from '../../wire/calls/reviews.ts'
import type { AskedReview } from '../../wire/records/review-records.ts'
import { call } from '../kit/api.ts'
import { Empty, Failure, useLoaded } from '../kit/parts.tsx'
import { route, to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { When } from '../kit/time.tsx'
import { AskedAbout } from './asked-about.tsx'

const REFRESH_MS = 2_000

const PAGE = 100
/** So many reviews have their form in the inbox. The others are links to their runs, which have it, too. */
const MOST_CARDS = 20

/** How many reviews wait, for the number beside the link to the inbox. */
export const useWaiting = (): number | undefined =>
  useLoaded('waiting', () => call(ListReviews, { state: 'pending', limit: 1 }), REFRESH_MS).data?.total

/** After so many looks at the first page all pages are read again, although it shows nothing new. */
const LOOKS = 15

/**
 * Returns a function that reads all reviews that wait, the oldest first. Where they are more than a page it looks at the
 * newest one and at the total, and reads all pages only when these have changed.
 */
function pendingReader(): () => Promise<AskedReview[]> {
  let last: { newest: string | undefined; total: number; reviews: AskedReview[]; looks: number } | null = null
  return async () => {
    if (last && last.total > PAGE && ++last.looks < LOOKS) {
      const { reviews, total } = await call(ListReviews, { state: 'pending', limit: 1 })
      if (reviews[0]?.id === last.newest && total === last.total) return last.reviews
    }
    const found = new Map<string, AskedReview>()
    let newest: string | undefined
    let total = 1
    // When reviews are large, a reply has fewer of them than the limit. One that comes meanwhile moves the others.
    for (let offset = 0; offset < total; ) {
      const page = await call(ListReviews, { state: 'pending', limit: PAGE, offset })
      newest ??= page.reviews[0]?.id
      for (const review of page.reviews) found.set(review.id, review)
      total = page.total
      if (page.reviews.length === 0) break
      offset += page.reviews.length
    }
    const reviews = [...found.values()].sort((one, other) => one.created_at - other.created_at)
    last = { newest, total, reviews, looks: 0 }
    return reviews
  }
}

export function Reviews() {
  const decided = route.value.query.get('state') === 'decided'
  return (
    <main>
      <header class="top">
        <h1>Reviews</h1>
        <NotifyMe />
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

export const mayNotify = (): boolean => 'Notification' in globalThis && Notification.permission === 'granted'

/** Asks the browser whether this page may tell the person that something waits. */
function NotifyMe() {
  const isOpen = useSignal('Notification' in globalThis && Notification.permission === 'default')
  if (!isOpen.value) return null
  const ask = async () => {
    await Notification.requestPermission()
    isOpen.value = false
  }
  return (
    <button type="button" class="plain" onClick={ask}>
      Notify me in this browser
    </button>
  )
}

function PendingReviews() {
  const read = useMemo(pendingReader, [])
  const { data, error, again } = useLoaded('pending', read, REFRESH_MS)
  if (!data) return <Failure of={error} />
  const cards = new Set(data.slice(0, MOST_CARDS))
  // Teams come in the order of what has waited longest for each.
  const teams = Map.groupBy(data, ({ team }) => team ?? '')
  return (
    <>
      <Failure of={error} />
      {data.length === 0 && (
        <Empty>
          <p>Nothing waits for you.</p>
          <p>
            A phase of the type <code>gate</code>, or one with <code>on_failure: escalate</code>, asks here.
          </p>
        </Empty>
      )}
      {[...teams].map(([team, reviews]) => (
        <section key={team} aria-label={team === '' ? 'Reviews' : `Reviews of ${team}`}>
          {teams.size > 1 && (
            <h2>
              {team} <span class="count">{reviews.length.toLocaleString('en')}</span>
            </h2>
          )}
          {reviews.map(review => cards.has(review) && <ReviewCard key={review.id} review={review} done={again} />)}
          <Others of={reviews.filter(review => !cards.has(review))} />
        </section>
      ))}
    </>
  )
}

/** Reviews without their forms: what they are about, and how long they have waited. */
function Others({ of }: { of: readonly AskedReview[] }) {
  if (of.length === 0) return null
  return (
    <ul class="chain" aria-label="More that wait">
      {of.map(review => (
        <li key={review.id}>
          <State of="awaiting_input" bare />
          <div>
            <AskedAbout review={review} />{' '}
            <span class="quiet small">
              asked <When at={review.created_at} />
            </span>
          </div>
        </li>
      ))}
    </ul>
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
      {data.reviews.map(({ id, run_id, run_name, team, phase, decision, decided_by, decided_at, comment }) => (
        <li key={id}>
          <div>
            <AskedAbout review={{ run_id, run_name, phase, ...(team !== undefined && { team }) }} />
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
