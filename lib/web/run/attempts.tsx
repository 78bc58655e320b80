// The history of a phase: its attempts, its waits between them, and its writes to other systems.

import type { History, Written } from '../../wire/records/run-records.ts'
import { fateOf, waitText } from '../../wire/records/words.ts'
import { ExternalLink } from '../kit/parts.tsx'
import { State } from '../kit/state.tsx'
import { Duration, durationOf, When } from '../kit/time.tsx'
import type { Phase } from './live.ts'
import type { Part, Scale } from './timeline.tsx'

/** The earlier attempts of a phase. */
type PastAttempts = History['attempts']

/** When a person was asked about the phase, and when the person answered. */
type ReviewTimes = readonly { created_at: number; decided_at: number | null }[]

/** A wait that is shorter than this part of the scale is not drawn. */
const LEAST = 200

/** The bar of a phase. `ready`: when the last phase ended on which it depends; null while one of them goes on. */
export function partsOf(
  phase: Phase,
  attempts: PastAttempts,
  ready: number | null,
  reviews: ReviewTimes,
  scale: Scale,
): Part[] {
  const { attempt, started_at, completed_at, state, waiting = null } = phase
  // A phase that ends while it waits for its next attempt has no more attempts than those that are recorded.
  const hasEnded = state === 'pending' || attempts.at(-1)?.attempt === attempt
  const earlier = attempts.filter(({ ended_at }) => ended_at === null || ended_at > scale.from)
  const spans = [
    ...earlier.map(each => ({ from: each.started_at, until: each.ended_at ?? each.started_at, kind: each.state })),
    ...(started_at === null || hasEnded ? [] : [{ from: started_at, until: completed_at, kind: state }]),
  ]
  const parts: Part[] = []
  const least = (scale.until - scale.from) / LEAST
  let idleSince = ready
  for (const [index, span] of spans.entries()) {
    if (idleSince !== null && span.from - idleSince > least)
      parts.push({ from: idleSince, until: span.from, ...waitOf(index, span.from - idleSince) })
    parts.push({ ...span, ...(spans.length > 1 && { title: `attempt ${index + 1}: ${span.kind}` }) })
    idleSince = span.until
  }
  if (state === 'pending' && idleSince !== null && waiting !== null) {
    parts.push({ from: idleSince, until: null, kind: 'wait', title: `waits for ${waitText(waiting)}` })
  }
  const persons = reviews.map(({ created_at, decided_at }) => ({
    from: created_at,
    until: decided_at,
    kind: 'person',
    title: 'waited for a person',
  }))
  return [...parts, ...persons]
}

const waitOf = (index: number, ms: number) => ({
  kind: 'wait',
  title: `${index === 0 ? 'waited' : 'waited for the next attempt'} ${durationOf(ms)}`,
})

/** When a phase could have begun: when the last phase ended on which it depends. */
export function readyAt(
  { depends_on }: Phase,
  phases: ReadonlyMap<string, Phase>,
  runStarted: number | null,
): number | null {
  const ends = depends_on.map(name => phases.get(name)?.completed_at ?? null)
  return ends.includes(null) || runStarted === null ? null : Math.max(runStarted, ...(ends as number[]))
}

export function Attempts({ phase, earlier: attempts }: { phase: Phase; earlier: PastAttempts }) {
  const { attempt, state, started_at, completed_at } = phase
  if (attempts.length === 0) return null
  const last = { attempt, state, error: null, started_at, ended_at: completed_at }
  const all = [...attempts, ...(attempts.at(-1)!.attempt < attempt ? [last] : [])]
  return (
    <>
      <h3>Attempts</h3>
      <ol class="chain">
        {all.map(each => (
          <li key={each.attempt}>
            <State of={each.state} bare />
            <div>
              attempt {each.attempt}{' '}
              <span class="quiet small">
                <When at={each.started_at} />
                {each.ended_at !== null && (
                  <>
                    {', took '}
                    <Duration from={each.started_at} until={each.ended_at} />
                  </>
                )}
                {each.state === 'interrupted' && ', its process ended'}
              </span>
              {each.error && <p class="quiet wrap">{each.error.message}</p>}
            </div>
          </li>
        ))}
      </ol>
    </>
  )
}

const STATES: Record<Written['state'], string> = {
  done: 'completed',
  partial: 'failed',
  sent: 'running',
  unknown: 'awaiting_input',
  presumed: 'failed',
}

/** The state whose shape a write has. A write that exists twice needs a person. */
const stateOf = (write: Written): string => ((write.copies ?? []).length > 0 ? 'awaiting_input' : STATES[write.state])

/** Writes to other systems, each with a link to its result. `withPath` adds the names of their phases. */
export function Writes({ of, withPath = false }: { of: readonly Written[]; withPath?: boolean }) {
  return (
    <ul class="chain">
      {of.map(write => (
        <li key={`${write.run_id} ${write.phase} ${write.entry}`}>
          <State of={stateOf(write)} bare />
          <div>
            {withPath && `${[...write.place, write.phase].join(' › ')} › `}
            {write.entry} <ExternalLink url={write.url}>{write.id ?? (write.url === null ? '' : 'open')}</ExternalLink>{' '}
            {(write.copies ?? []).map(({ id, url }) => (
              <>
                <ExternalLink url={url}>{id ?? 'open'}</ExternalLink>{' '}
              </>
            ))}
            <span class="quiet small">{fateOf(write)}</span>
          </div>
        </li>
      ))}
    </ul>
  )
}
