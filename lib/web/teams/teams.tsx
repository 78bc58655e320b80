// The page of teams, as far as daemon and hub have it in common: each team with its last runs, what became of them, and when
// it starts next.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Static } from 'typebox'
import { GetRunStats } from '../../wire/calls/runs.ts'
import { GetTeamHistory } from '../../wire/calls/teams.ts'
import { ListTriggers } from '../../wire/calls/triggers.ts'
import { call } from '../kit/api.ts'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { durationOf, now, UpcomingTime } from '../kit/time.tsx'
import { inPlace, type Place } from '../triggers/place.ts'
import { Strip } from './strip.tsx'

const SHOWN = 20
const DAY_MS = 86_400_000
/** So often the runs of a team that is in view are asked for again, and its numbers of days. */
const REFRESH_MS = 15_000
const NUMBERS_MS = 60_000

type History = Static<typeof GetTeamHistory.data>['runs']
type Stats = Static<typeof GetRunStats.data>

interface Props {
  team: string
  place: Pick<Place, 'realm_id'>
  /** What only this program knows of the team. It is drawn once the card is in view, with the newest run, if there is one. */
  children(newest: History[number] | null): ComponentChildren
}

export function TeamCard({ team, place, children }: Props) {
  const card = useRef<HTMLLIElement>(null)
  const isInView = useSignal(false)
  // What is drawn stays, so that nothing moves while somebody scrolls.
  const wasSeen = useRef(false)
  wasSeen.current ||= isInView.value
  useEffect(() => {
    const observer = new IntersectionObserver(entries => {
      isInView.value = entries.at(-1)?.isIntersecting ?? false
    })
    observer.observe(card.current!)
    return () => observer.disconnect()
  }, [])
  return (
    <li class="card team" ref={card}>
      <h2 class="wrap">
        <a href={withQuery(to('runs'), { team, realm: place.realm_id ?? '' })}>{team}</a>
      </h2>
      {wasSeen.current && (
        <TeamFacts team={team} place={place} isInView={isInView.value}>
          {children}
        </TeamFacts>
      )}
    </li>
  )
}

function TeamFacts({ team, place, isInView, children }: Props & { isInView: boolean }) {
  const key = `${team} ${place.realm_id}`
  const about = { ...inPlace(place), team }
  const found = useLoaded(
    `team ${key}`,
    async () => {
      const [history, next] = await Promise.all([
        call(GetTeamHistory, { ...about, limit: SHOWN }),
        call(ListTriggers, { ...about, limit: 100 }),
      ])
      return { runs: history.runs, next: nextOf(next.triggers) }
    },
    REFRESH_MS,
    isInView,
  )
  const numbers = useLoaded(
    `numbers ${key}`,
    async () => {
      const of = (days: number) => call(GetRunStats, { ...about, since: now.peek() - days * DAY_MS })
      const [week, month] = await Promise.all([of(7), of(30)])
      return { week, month }
    },
    NUMBERS_MS,
    isInView,
  )
  const error = found.error ?? numbers.error
  if (!found.data || !numbers.data) return error ? <Failure of={error} /> : <div class="loading" aria-busy="true" />
  const { runs, next } = found.data
  return (
    <>
      {runs.length === 0 && <p class="quiet small">It has not run yet.</p>}
      {runs.length > 0 && (
        <>
          <Strip runs={runs} />
          <Numbers {...numbers.data} />
        </>
      )}
      {next && (
        <p class="small">
          next <UpcomingTime at={next.at} />, by <a href={to('triggers', next.id)}>{next.name}</a>
        </p>
      )}
      {children(runs[0] ?? null)}
    </>
  )
}

/** The next slot of its triggers. */
function nextOf(triggers: Static<typeof ListTriggers.data>['triggers']) {
  const slots = triggers.flatMap(({ id, name, next }) => (next[0] ? [{ id, name, at: next[0].at }] : []))
  return slots.sort((one, other) => one.at - other.at)[0] ?? null
}

function Numbers({ week, month }: { week: Stats; month: Stats }) {
  const rows: [string, (stats: Stats) => string][] = [
    ['Runs', ({ runs }) => runs.toLocaleString('en')],
    [
      'Success',
      ({ completed, failed }) =>
        completed + failed === 0 ? '–' : `${Math.floor((100 * completed) / (completed + failed))} %`,
    ],
    ['Half within', ({ p50_ms }) => (p50_ms === null ? '–' : durationOf(p50_ms))],
    ['95 % within', ({ p95_ms }) => (p95_ms === null ? '–' : durationOf(p95_ms))],
  ]
  return (
    <table class="small numbers">
      <thead>
        <tr>
          <td />
          <th scope="col">7 days</th>
          <th scope="col">30 days</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([title, text]) => (
          <tr key={title}>
            <th scope="row">{title}</th>
            <td class="number">{text(week)}</td>
            <td class="number">{text(month)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface Write {
  agent: string
  action: string | null
  to: string | null
}

/** Where its phases write, each place once. */
export function WritesOutside({ of: writes }: { of: readonly Write[] }) {
  const places = writes.map(({ agent, action, to }) =>
    [action === null ? agent : `${agent}.${action}`, to].filter(Boolean).join(' '),
  )
  const all = [...new Set(places)]
  return (
    <p class="small wrap">
      {all.length === 0 ? (
        <span class="quiet">Writes nothing to other systems, except what its commands do</span>
      ) : (
        <>Writes: {all.join(', ')}</>
      )}
    </p>
  )
}
