// The calendar of triggers: the next seven days and the two weeks before, each day with what became of its occasions. A
// mark has a colour, a shape and a word.

import { command } from '../kit/api.ts'
import { serverNow } from '../kit/clock.ts'
import { Empty, Failure, useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { zoneHere } from '../kit/time.tsx'
import { calendarOf, type Day, type Mark } from './calendar-days.ts'
import type { Place } from './place.ts'
import { clockOf } from './times.tsx'
import { FATES, type Fate } from './words.ts'

const REFRESH_MS = 60_000
/** Lines of a day that are shown at once. */
const SHOWN = 6

export function Calendar({ place, kind }: { place: Place; kind: string }) {
  const { data, error } = useLoaded(
    `calendar ${place.realm_id} ${kind}`,
    () => calendarOf(place, kind, serverNow()),
    REFRESH_MS,
  )
  if (!data) return error ? <Failure of={error} /> : <div class="loading" aria-busy="true" />
  const { past, coming, leftOut, cut } = data
  const marks = [...coming, ...past].flatMap(day => day.marks)
  if (marks.length === 0) {
    return (
      <Empty>
        <p>Nothing was due in the last two weeks, and nothing is in the next seven days.</p>
        <p>
          <code>{command} triggers</code> lists what could start runs.
        </p>
      </Empty>
    )
  }
  return (
    <>
      <Failure of={error} />
      <Legend of={new Set(marks.map(({ fate }) => fate))} />
      <h2>Today and the next six days</h2>
      <Days of={coming} />
      <h2>The two weeks before</h2>
      <Days of={past} />
      <div class="quiet small">
        <p>Days and times are those of {zoneHere()}.</p>
        {leftOut > 0 && <p>{leftOut} more triggers are not in this calendar. Choose a kind to see fewer.</p>}
        {cut.map(({ name, since }) => (
          <p key={name} class="wrap">
            {name} has more than can be shown here: what it did before {clockOf(since)} is left out.
          </p>
        ))}
      </div>
    </>
  )
}

/** Which shape means what, of those that are there. */
function Legend({ of }: { of: ReadonlySet<Fate> }) {
  return (
    <ul class="marks-legend" aria-label="Legend">
      {(Object.keys(FATES) as Fate[])
        .filter(fate => of.has(fate))
        .map(fate => (
          <li key={fate}>
            <State of={fate} word={FATES[fate]} />
          </li>
        ))}
    </ul>
  )
}

const DAY = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' })

function Days({ of }: { of: readonly Day[] }) {
  const today = new Date(serverNow()).toDateString()
  return (
    <ol class="calendar">
      {of.map(({ at, marks }) => {
        const isToday = new Date(at).toDateString() === today
        return (
          <li key={at} class={marks.length === 0 ? 'idle' : ''} aria-current={isToday ? 'date' : undefined}>
            <h3>
              {DAY.format(at)}
              {isToday && <span class="quiet small"> today</span>}
            </h3>
            <Marks of={marks.slice(0, SHOWN)} day={at} />
            {marks.length > SHOWN && (
              <details>
                <summary class="small">{marks.length - SHOWN} more</summary>
                <Marks of={marks.slice(SHOWN)} day={at} />
              </details>
            )}
          </li>
        )
      })}
    </ol>
  )
}

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })

function Marks({ of, day }: { of: readonly Mark[]; day: number }) {
  return (
    <ul class="plain">
      {of.map(mark => (
        <li key={`${mark.trigger.id} ${mark.fate} ${mark.at}`}>
          <State of={mark.fate} bare word={FATES[mark.fate]} />
          <a href={to('triggers', mark.trigger.id)} title={titleOf(mark)}>
            <span class="number small">{timeOf(mark, day)}</span> {mark.trigger.name}
          </a>
        </li>
      ))}
    </ul>
  )
}

const DAY_MS = 86_400_000

/** Its time, or how often it was: `06:00`, `12 ×`, and of a row of several days `all day`. */
function timeOf({ at, until, count, isSpan, isMore }: Mark, day: number): string {
  if (isSpan) {
    if (at >= day) return `from ${TIME.format(at)}`
    return until < day + DAY_MS ? `to ${TIME.format(until)}` : 'all day'
  }
  return count === 1 ? TIME.format(at) : `${count.toLocaleString('en')}${isMore ? '+' : ''} ×`
}

function titleOf({ trigger: { name }, fate, count, at, until, isMore }: Mark): string {
  const time = (of: number) => clockOf(of, zoneHere())
  const span = at === until ? time(at) : `${time(at)} to ${time(until)}`
  return `${name}: ${FATES[fate]}, ${count === 1 ? '' : `${count}${isMore ? ' or more' : ''} times, `}${span}`
}
