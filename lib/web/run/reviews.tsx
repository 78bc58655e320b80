// The questions that runs ask people, with the forms of their answers.

import { useSignal } from '@preact/signals'
import { DecideReview, ListReviews } from '../../wire/calls/reviews.ts'
import { type Choice, choicesOf } from '../../wire/choices.ts'
import type { AskedReview } from '../../wire/records/run-records.ts'
import { useAction } from '../kit/actions.tsx'
import { call, token } from '../kit/api.ts'
import { bound, Field, handleSubmit } from '../kit/fields.tsx'
import { Fields, type Typed, valuesOf } from '../kit/forms.tsx'
import { Empty, Failure, TokenForm, useLoaded } from '../kit/parts.tsx'
import { route, to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { When } from '../kit/time.tsx'

const REFRESH_MS = 2_000

const LABELS: Record<Choice, string> = {
  approve: 'Approve',
  reject: 'Reject',
  retry: 'Retry: try the phase again',
  skip: 'Skip: go on without it',
  complete: 'Complete: it was done elsewhere',
  fail: 'Fail: end the run',
}

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

/** A link to the run, with the phase if it is about one. */
function AskedAbout({
  review: { run_id, run_name, phase },
}: {
  review: Pick<AskedReview, 'run_id' | 'run_name' | 'phase'>
}) {
  return (
    <a href={withQuery(to('runs', run_id), { phase: phase ?? '' })}>
      {run_name ?? run_id}
      {phase !== null && ` › ${phase}`}
    </a>
  )
}

/** The review with the large fields that a list leaves out. */
function useFullReview(review: AskedReview): AskedReview {
  const { id, prompt_bytes, entries_bytes, inputs_bytes } = review
  const isCut = (prompt_bytes ?? entries_bytes ?? inputs_bytes) !== undefined
  const found = useLoaded(isCut ? `review ${id}` : 'no review', async () =>
    isCut ? await call(ListReviews, { review_id: id }) : null,
  )
  return (isCut && found.data?.reviews[0]) || review
}

/** One pending review. `done` is called after the answer. */
export function ReviewCard({ review: listed, done }: { review: AskedReview; done(): unknown }) {
  const review = useFullReview(listed)
  const typed = useSignal<Typed>({})
  const comment = useSignal('')
  const { busy, error, run } = useAction()
  const { id, phase, kind, prompt, reason, form = [], created_at } = review

  const decide = (decision: Choice) =>
    run(async () => {
      const values = decision === 'approve' && form.length > 0 ? { values: valuesOf(form, typed.value) } : {}
      const given = comment.value.trim() === '' ? {} : { comment: comment.value.trim() }
      await call(DecideReview, { review_id: id, decision, ...given, ...values })
      await done()
    })
  const [first, ...others] = choicesOf(kind)
  return (
    <section class="card" aria-label={`Review of ${phase ?? 'the run'}`}>
      <header class="row">
        <State of="awaiting_input" bare />
        <h2>
          <AskedAbout review={review} />
        </h2>
        <span class="quiet small">
          asked <When at={created_at} />
        </span>
      </header>
      {prompt !== '' && <p class="prompt wrap">{prompt}</p>}
      {kind === 'escalation' && reason !== '' && <p class="quiet wrap">{reason}</p>}
      <form onSubmit={handleSubmit(() => first !== undefined && decide(first))}>
        <div class="grid">
          <Fields of={form} typed={typed} prefix={id} />
          <Field label="Comment" maxLength={10_000} {...bound(comment)} />
        </div>
        {token.value !== null && first !== undefined && (
          <div class="row">
            <button type="submit" disabled={busy}>
              {LABELS[first]}
            </button>
            {others.map(each => (
              <button key={each} type="button" class="plain" disabled={busy} onClick={() => decide(each)}>
                {LABELS[each]}
              </button>
            ))}
          </div>
        )}
      </form>
      {error === null ? <TokenForm /> : <Failure of={error} />}
    </section>
  )
}
