// A review that waits: what is asked, what whoever decides has to see (what the run was given, and what the phase printed
// that asks), and the form of the answer.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { DecideReview, ListReviews } from '../../wire/calls/reviews.ts'
import { GetLogs, GetPhases, GetRun } from '../../wire/calls/runs.ts'
import { type Choice, choicesOf } from '../../wire/choices.ts'
import { askedOutput, markOf } from '../../wire/records/asked-output.ts'
import type { AskedReview } from '../../wire/records/run-records.ts'
import { useAction } from '../kit/actions.tsx'
import { call, command, token } from '../kit/api.ts'
import { bound, Field, handleSubmit } from '../kit/fields.tsx'
import { Fields, type Typed, valuesOf } from '../kit/forms.tsx'
import { Coloured, Failure, Json, TokenForm, useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { When } from '../kit/time.tsx'
import { AskedAbout } from './asked-about.tsx'

const LABELS: Record<Choice, string> = {
  approve: 'Approve',
  reject: 'Reject',
  retry: 'Retry: try the phase again',
  skip: 'Skip: go on without it',
  complete: 'Complete: it was done elsewhere',
  fail: 'Fail: end the run',
}

/** How often the hub is asked for lines that it lacks. */
const REFRESH_MS = 10_000

/** What the run was given. Secret inputs are masked. */
function Given({ runId: run_id }: { runId: string }) {
  const { data, error } = useLoaded(`given ${run_id}`, async () => (await call(GetRun, { run_id })).inputs)
  if (!data) return <Failure of={error} />
  if (Object.keys(data).length === 0) return null
  return (
    <>
      <h3>Inputs</h3>
      <Json of={data} />
    </>
  )
}

/** What the phase printed that asks, as `reviews` shows it: from its beginning, with what is left out and what is lacking. */
function Printed({ runId: run_id, phase }: { runId: string; phase: string }) {
  const { data, error, again } = useLoaded(`printed ${run_id} ${phase}`, () =>
    askedOutput(phase, {
      phases: () => call(GetPhases, { run_id }),
      lines: (after_seq, limit) => call(GetLogs, { run_id, phase, after_seq, limit }),
    }),
  )
  const isLacking = data !== null && data.lacks !== null
  useEffect(() => {
    if (!isLacking) return
    const timer = setInterval(() => !document.hidden && again(), REFRESH_MS)
    return () => clearInterval(timer)
  }, [isLacking])
  if (!data) return <Failure of={error} />
  const { earlier, hasEarlier, present, left, lacks } = data
  const shown = [...earlier, ...(hasEarlier ? [markOf(data)] : []), ...present]
  if (shown.length === 0 && lacks === null) return null
  const log = `${command} logs ${run_id} --phase ${phase}`
  return (
    <>
      <h3>Output</h3>
      {left > 0 && (
        <p>
          {left.toLocaleString('en')} lines are not shown:{' '}
          <a href={withQuery(to('runs', run_id, 'logs'), { phase })}>the whole log</a>
        </p>
      )}
      {shown.length > 0 && (
        <section class="printed wrap" aria-label={`Output of ${phase}`}>
          {shown.map((text, index) => (
            <div key={index}>
              <Coloured text={text} />
            </div>
          ))}
        </section>
      )}
      {lacks !== null && (
        <div class="notice">
          <p>
            The hub lacks lines of the log of this run: {lacks}. On the machine of its daemon: <code>{log}</code>
          </p>
        </div>
      )}
    </>
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
      <Given runId={review.run_id} />
      {phase !== null && <Printed runId={review.run_id} phase={phase} />}
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
