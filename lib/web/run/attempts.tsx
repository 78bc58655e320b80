// The history of a phase: its attempts or its turns, its waits between them, and its writes to other systems.

import type { History as PhaseHistory, Written } from '../../wire/records/run-records.ts'
import { fateOf, waitText } from '../../wire/records/words.ts'
import { ExternalLink } from '../kit/parts.tsx'
import { route, to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { Duration, durationOf, When } from '../kit/time.tsx'
import type { Phase } from './live.ts'
import type { Part, Scale } from './timeline.tsx'

/** The earlier attempts of a phase. */
type PastAttempts = PhaseHistory['attempts']

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
  const { attempt, started_at, completed_at, state, waiting = null, turns = [] } = phase
  // A phase that ends while it waits for its next attempt has no more attempts than those that are recorded.
  const hasEnded = state === 'pending' || attempts.at(-1)?.attempt === attempt
  const earlier = attempts.filter(({ ended_at }) => ended_at === null || ended_at > scale.from)
  const ofTurns = turns.map(({ state, ...turn }) => ({ from: turn.started_at, until: turn.completed_at, kind: state }))
  const ofAttempts = [
    ...earlier.map(each => ({ from: each.started_at, until: each.ended_at ?? each.started_at, kind: each.state })),
    ...(started_at === null || hasEnded ? [] : [{ from: started_at, until: completed_at, kind: state }]),
  ]
  const spans = turns.length > 0 ? ofTurns : ofAttempts
  const parts: Part[] = []
  const least = (scale.until - scale.from) / LEAST
  let idleSince = ready
  for (const [index, span] of spans.entries()) {
    if (idleSince !== null && span.from - idleSince > least)
      parts.push({ from: idleSince, until: span.from, ...waitOf(index, span.from - idleSince, turns.length > 0) })
    const name = turns[index] ? `turn ${turns[index].turn}` : `attempt ${index + 1}`
    parts.push({ ...span, ...(spans.length > 1 && { title: `${name}: ${span.kind}` }) })
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

const waitOf = (index: number, ms: number, ofTurns: boolean) => ({
  kind: 'wait',
  title: `waited ${index === 0 ? '' : `for the next ${ofTurns ? 'turn' : 'attempt'} `}${durationOf(ms)}`,
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
  const { attempt, state, started_at, completed_at, turns = [] } = phase
  const last = { attempt, state, error: null, started_at, ended_at: completed_at }
  const all = attempts.length === 0 ? [] : [...attempts, ...(attempts.at(-1)!.attempt < attempt ? [last] : [])]
  const ofTurns = turns.map(({ turn, completed_at, ...each }) => ({
    ...each,
    turn,
    error: null,
    ended_at: completed_at,
  }))
  return (
    <>
      <History of={ofTurns.map(each => ({ ...each, name: `turn ${each.turn}` }))} title="Turns" />
      <History
        of={all.map(each => ({
          ...each,
          name: `attempt ${each.attempt}`,
          place: { phase: phase.name, attempt: String(each.attempt) },
        }))}
        title="Attempts"
      />
    </>
  )
}

type Past = Omit<PastAttempts[number], 'attempt' | 'phase' | 'state' | 'started_at'> & {
  name: string
  state: string
  started_at: number | null
  /** The query of its address, and of that of its log. */
  place?: { phase: string; attempt: string }
}

function History({ of: all, title }: { of: readonly Past[]; title: string }) {
  if (all.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <ol class="chain">
        {all.map(each => (
          <li key={each.name} class={isChosen(each) ? 'chosen' : undefined}>
            <State of={each.state} bare />
            <div>
              <Name of={each} />{' '}
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

const isChosen = ({ place }: Past): boolean => place?.attempt === route.value.query.get('attempt')

/** The name with the address of the attempt, and its log. */
function Name({ of: past }: { of: Past }) {
  const { name, place } = past
  const id = route.value.parts[1]
  if (!place || id === undefined) return <>{name}</>
  return (
    <>
      <a href={withQuery(to('runs', id), place)} aria-current={isChosen(past) ? 'true' : undefined}>
        {name}
      </a>{' '}
      <a class="small" href={withQuery(to('runs', id, 'logs'), place)} aria-label={`Log of ${name}`}>
        log
      </a>
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
