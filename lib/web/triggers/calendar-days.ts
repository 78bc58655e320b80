// What triggers did in the last two weeks and will do in the next one, by days of this browser's zone.

import { ListFirings, PreviewTrigger } from '../../wire/calls/triggers.ts'
import type { FiringRecord } from '../../wire/records/triggers.ts'
import { call } from '../kit/api.ts'
import { listTriggers, type Place, type Shown } from './place.ts'
import { type Fate, fateOf } from './words.ts'

/** One line of a day: what a trigger did, so many times with the same end. */
export interface Mark {
  trigger: Pick<Shown, 'id' | 'name'>
  fate: Fate
  count: number
  /** The first of them, and the last. */
  at: number
  until: number
  /** One row of several days, which stands on each of them. */
  isSpan?: true
  /** There are more that were not read. */
  isMore?: true
}

export interface Day {
  /** Its first moment. */
  at: number
  marks: Mark[]
}

export interface CalendarData {
  past: Day[]
  coming: Day[]
  /** Triggers that are not in it, because there are too many. */
  leftOut: number
  /** Triggers with more firings than were read, and the first moment of which all were read. */
  cut: { name: string; since: number }[]
}

const PAST_DAYS = 14
const COMING_DAYS = 7
/** More triggers, and more firings of one, would be more requests than a page should make. */
const MOST_TRIGGERS = 50
const MOST_FIRINGS = 300
const MOST_SLOTS = 1_000
const AT_ONCE = 4
const PAGE = 100

const DAY_MS = 86_400_000

/** The first moment of the day that is so many days from that of `now`. */
function dayAt(now: number, days: number): number {
  const date = new Date(now)
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime()
}

const dayOf = (at: number): number => dayAt(at, 0)

interface Planned {
  slots: readonly Shown['next'][number][]
  /** The days of which only the first slots were read. */
  cut: ReadonlySet<number>
}
const NONE: Planned = { slots: [], cut: new Set() }

interface History {
  trigger: Shown
  firings: FiringRecord[]
  planned: Planned
  isCut: boolean
}

export async function calendarOf(place: Place, kind: string, now: number): Promise<CalendarData> {
  const [from, until] = [dayAt(now, -PAST_DAYS), dayAt(now, COMING_DAYS)]
  const { triggers, total } = await listTriggers(place, kind, { limit: MOST_TRIGGERS, offset: 0 })
  const histories: History[] = []
  const left = triggers.slice()
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) histories.push(await historyOf(next, { from, now, until }))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  histories.sort((one, other) => (one.trigger.name < other.trigger.name ? -1 : 1))
  const days = (first: number, count: number): Day[] =>
    Array.from({ length: count }, (_, index) => ({ at: dayAt(now, first + index), marks: [] }))
  const [past, coming] = [days(-PAST_DAYS, PAST_DAYS), days(0, COMING_DAYS)]
  const byDay = new Map([...past, ...coming].map(day => [day.at, day]))
  for (const history of histories) for (const [day, mark] of marksOf(history)) byDay.get(day)?.marks.push(mark)
  for (const { marks } of byDay.values()) marks.sort((one, other) => one.at - other.at)
  const cut = histories
    .filter(({ isCut }) => isCut)
    .map(({ trigger, firings }) => ({ name: trigger.name, since: firings.at(-1)!.at }))
  return { past, coming, leftOut: total - triggers.length, cut }
}

async function historyOf(
  trigger: Shown,
  { from, now, until }: Record<'from' | 'now' | 'until', number>,
): Promise<History> {
  const { id: trigger_id, last, next, state, kind } = trigger
  const firings: FiringRecord[] = []
  let isCut = false
  while (last.length > 0) {
    const page = { limit: PAGE, offset: firings.length }
    const found = await call(ListFirings, { trigger_id, since: from - DAY_MS * PAST_DAYS, ...page })
    firings.push(...found.firings)
    if (found.firings.length < PAGE) break
    isCut = firings.length >= MOST_FIRINGS
    if (isCut || firings.at(-1)!.at < from) break
  }
  const isDue = kind === 'schedule' && state === 'active' && next.length > 0
  const planned = isDue ? await plannedOf(trigger_id, now, until) : NONE
  return { trigger, firings, planned, isCut }
}

/** The slots from now on. Where they are too many for one reply, each day is asked for by itself. */
async function plannedOf(trigger_id: string, now: number, until: number): Promise<Planned> {
  const slotsIn = async (after: number, until: number) =>
    (await call(PreviewTrigger, { trigger_id, after, until, limit: MOST_SLOTS })).slots
  const all = await slotsIn(now, until)
  if (all.length < MOST_SLOTS) return { slots: all, cut: NONE.cut }
  const slots: Shown['next'] = []
  const cut = new Set<number>()
  for (let day = dayOf(now); day < until; day = dayAt(day, 1)) {
    const found = await slotsIn(Math.max(now, day - 1), dayAt(day, 1) - 1)
    slots.push(...found)
    if (found.length === MOST_SLOTS) cut.add(day)
  }
  return { slots, cut }
}

/** Its marks, each with the first moment of its day. */
function marksOf({ trigger, firings, planned }: History): [day: number, mark: Mark][] {
  const marks = new Map<string, [number, Mark]>()
  const add = (at: number, fate: Fate, count: number) => {
    const day = dayOf(at)
    const key = `${day} ${fate}`
    const known = marks.get(key)?.[1]
    if (!known) return void marks.set(key, [day, { trigger, fate, count, at, until: at }])
    known.count += count
    known.at = Math.min(known.at, at)
    known.until = Math.max(known.until, at)
  }
  const spans: [number, Mark][] = []
  for (const firing of firings) {
    const { at, until, count } = firing
    const fate = fateOf(firing)
    if (until === null || dayOf(at) === dayOf(until)) add(at, fate, count)
    else {
      for (let day = dayOf(at); day <= until; day = dayAt(day, 1))
        spans.push([day, { trigger, fate, count, at, until, isSpan: true }])
    }
  }
  for (const { at } of planned.slots) add(at, 'pending', 1)
  for (const day of planned.cut) marks.get(`${day} pending`)![1].isMore = true
  return [...marks.values(), ...spans]
}
