// A review that waits: what is asked, what whoever decides has to see (what the run was given, and what the phase printed
// that asks), and the form of the answer.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { sizeText } from '../../size.ts'
import { DecideReview, ListReviews } from '../../wire/calls/reviews.ts'
import { GetLogs, GetPhases, GetRun } from '../../wire/calls/runs.ts'
import { type Choice, choicesOf } from '../../wire/choices.ts'
import { askedOutput, markOf } from '../../wire/records/asked-output.ts'
import type { AskedReview, ReviewNext } from '../../wire/records/review-records.ts'
import { ActionButton } from '../kit/actions.tsx'
import { call, command, commandOf, forbidsReview, type Send, token } from '../kit/api.ts'
import { Area, bound, handleSubmit } from '../kit/fields.tsx'
import { Fields, type Typed, valuesOf } from '../kit/forms.tsx'
import { Coloured, Failure, Json, TokenForm, useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { UpcomingTime, When } from '../kit/time.tsx'
import { AskedAbout } from './asked-about.tsx'
import { Writes } from './plan.tsx'

const LABELS: Record<Choice, string> = {
  approve: 'Approve',
  reject: 'Reject',
  retry: 'Retry',
  skip: 'Skip',
  complete: 'Complete',
  fail: 'Fail',
}

/** What the second button of a decision says after its name. */
const CONSEQUENCES: Record<Choice, string> = {
  approve: 'the run goes on',
  reject: 'the run ends here',
  retry: 'the phase is tried again',
  skip: 'the run goes on without the phase',
  complete: 'the phase was done elsewhere, and the run goes on',
  fail: 'the phase fails',
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
function Printed({ of: { run_id, shown: kept = null }, phase }: { of: AskedReview; phase: string }) {
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
  const inLog = [...earlier, ...(hasEarlier ? [markOf(data)] : []), ...present]
  // What came with the review is there at once, and stays when the lines are gone.
  const isInLog = lacks === null || !kept?.output
  const shown = isInLog ? inLog : kept.output.split('\n')
  if (shown.length === 0 && lacks === null) return null
  const log = `${command} logs ${run_id} --phase ${phase}`
  return (
    <>
      <h3>Output</h3>
      {!isInLog && kept.omitted_bytes > 0 && <p>This is the end of it; {sizeText(kept.omitted_bytes)} came before.</p>}
      {isInLog && left > 0 && (
        <p>
          {left.toLocaleString('en')} lines are not shown:{' '}
          <a href={withQuery(to('runs', run_id, 'logs'), { phase })}>the whole log</a>
        </p>
      )}
      {shown.length > 0 && (
        <section class="printed wrap" aria-label={`Output of ${phase} in ${run_id}`}>
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

/** The files that the commands of the gate wrote. */
function Wrote({ of: { run_id, shown } }: { of: AskedReview }) {
  if (!shown || shown.files.length === 0) return null
  const { files, more_files = 0 } = shown
  return (
    <>
      <h3>Files</h3>
      <ul aria-label="Files that it wrote">
        {files.map(({ path, bytes }) => (
          <li key={path}>
            <a href={withQuery(to('runs', run_id, 'files'), { path })}>{path.replace(/^files\//, '')}</a>{' '}
            <span class="quiet small number">{sizeText(bytes)}</span>
          </li>
        ))}
      </ul>
      {more_files > 0 && <p>There are {more_files.toLocaleString('en')} more.</p>}
    </>
  )
}

/** What tells the parts of this review from those of others on the page. */
const nameOf = ({ run_id, run_name, phase }: AskedReview): string => `${run_name ?? run_id} › ${phase ?? 'start'}`

/** What happens on approval, beside the buttons, or why that is not known here. */
function Next({ of }: { of: AskedReview }) {
  const { next, lacks } = of
  if (!next && !lacks) return null
  return (
    <section aria-label={`What happens next in ${nameOf(of)}`}>
      <h3>What happens next</h3>
      {next ? <Known next={next} /> : <p class="notice">It is not known here: {lacks}.</p>}
    </section>
  )
}

function Known({ next: { phases, writes, more_phases = 0, more_writes = 0 } }: { next: ReviewNext }) {
  const more = more_phases > 0 ? ` and ${more_phases.toLocaleString('en')} more` : ''
  return (
    <>
      <p>{phases.length === 0 ? 'No phase runs after it.' : `Then these phases run: ${phases.join(', ')}${more}.`}</p>
      <Writes of={{ writes }} />
      {more_writes > 0 && <p>There are {more_writes.toLocaleString('en')} more writes.</p>}
    </>
  )
}

/** Such as `3 writes to jira`. */
function consequence(decision: Choice, next: AskedReview['next']): string {
  const { writes = [], more_writes = 0 } = next ?? {}
  const isOnward = decision === 'approve' || decision === 'retry'
  if (!isOnward || writes.length === 0) return CONSEQUENCES[decision]
  const count = writes.length + more_writes
  return `${count} ${count === 1 ? 'write' : 'writes'} to ${[...new Set(writes.map(({ agent }) => agent))].join(', ')}`
}

/** The review with what a list leaves out. */
function useFullReview(review: AskedReview): AskedReview {
  const { id } = review
  return useLoaded(`review ${id}`, () => call(ListReviews, { review_id: id })).data?.reviews[0] ?? review
}

/** One pending review. `done` is called after the answer. */
export function ReviewCard({ review: listed, done }: { review: AskedReview; done(): unknown }) {
  const review = useFullReview(listed)
  const typed = useSignal<Typed>({})
  const comment = useSignal('')
  const answer = useRef<HTMLFormElement>(null)
  const decisions = useRef<HTMLDivElement>(null)
  const { id, phase, kind, prompt, reason, form = [], created_at, next, reviewers = [], expires_at = null } = review

  const decide = async (send: Send, decision: Choice) => {
    const values = decision === 'approve' && form.length > 0 ? { values: valuesOf(form, typed.value) } : {}
    const given = comment.value.trim() === '' ? {} : { comment: comment.value.trim() }
    await send(DecideReview, { review_id: id, decision, ...given, ...values })
  }
  // No key that is pressed in a field decides: at most it leads to the buttons.
  const leadToDecisions = () => decisions.current?.querySelector('button')?.focus()
  return (
    <section class="card" aria-label={`Review of ${phase ?? 'the run'}: ${nameOf(review)}`}>
      <header class="row">
        <State of="awaiting_input" bare />
        <h2>
          <AskedAbout review={review} />
        </h2>
        <span class="quiet small">
          asked <When at={created_at} />
          {reviewers.length > 0 && !reviewers.includes('any') && `, of ${reviewers.join(', ')}`}
          {expires_at !== null && (
            <>
              , expires <UpcomingTime at={expires_at} />
            </>
          )}
        </span>
      </header>
      {prompt !== '' && <p class="prompt wrap">{prompt}</p>}
      {kind === 'escalation' && reason !== '' && <p class="quiet wrap">{reason}</p>}
      <Given runId={review.run_id} />
      {phase !== null && <Printed of={review} phase={phase} />}
      <Wrote of={review} />
      <form
        ref={answer}
        onSubmit={handleSubmit(leadToDecisions)}
        onKeyDown={event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && leadToDecisions()}
      >
        <div class="grid">
          <Fields of={form} typed={typed} prefix={id} />
          <Area label="Comment" rows={2} maxLength={10_000} {...bound(comment)} />
        </div>
      </form>
      <Next of={review} />
      {token.value !== null && (
        <div class="row decisions" ref={decisions}>
          {choicesOf(kind).map((each, index) => (
            <ActionButton
              key={each}
              plain={index > 0}
              question="An answer cannot be taken back."
              confirm={`${LABELS[each]}: ${consequence(each, next)}`}
              may={() => each !== 'approve' || answer.current!.reportValidity()}
              send={send => decide(send, each)}
              done={done}
              forbidden={forbidsReview(review)}
              command={commandOf('decide', id, each)}
            >
              {LABELS[each]}
            </ActionButton>
          ))}
        </div>
      )}
      <TokenForm />
    </section>
  )
}
