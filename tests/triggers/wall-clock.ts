// Which slots a pattern should have around a change of a zone's clock, computed in another way than cadre does: every
// minute is looked at, with the local time that `Intl` shows for it. It shares no code with cadre, and patterns are
// made as sets of values beside their text, so that nothing here reads a pattern.

import type { Random } from '../support/random.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** How far before and after a change a window reaches. */
const AROUND = 2 * DAY

/** The minutes around a change. */
export interface Window {
  tz: string
  /** The instant of the change; some noon in a zone without changes. */
  change: number
  from: number
  until: number
  /** The local time of each minute from `from` on, as if it were UTC. */
  labels: number[]
}

/** A pattern, and what it means. */
export interface Made {
  text: string
  minutes: Set<number>
  hours: Set<number>
  hasDay(date: Date): boolean
  fixed: boolean
}

/** Local time as if it were UTC. */
function clockOf(tz: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: tz,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  return instant => {
    const [month, day, year, hour, minute] = format.format(instant).match(/\d+/g)!.map(Number)
    return Date.UTC(year!, month! - 1, day, hour, minute)
  }
}

/** The instants from `first` to `last` at which the clock of the zone jumps. */
export function changesOf(tz: string, first: number, last: number): number[] {
  const clock = clockOf(tz)
  const offset = (instant: number) => clock(instant) - instant
  const changes: number[] = []
  for (let day = first; day < last; day += DAY) {
    let [low, high] = [day, day + DAY]
    if (offset(low) === offset(high)) continue
    while (high - low > MINUTE) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE) * MINUTE
      if (offset(middle) === offset(low)) low = middle
      else high = middle
    }
    changes.push(high)
  }
  return changes
}

export function windowAround(tz: string, change: number): Window {
  const clock = clockOf(tz)
  const [from, until] = [change - AROUND, change + AROUND]
  const labels = Array.from({ length: (until - from) / MINUTE + 1 }, (_, index) => clock(from + index * MINUTE))
  return { tz, change, from, until, labels }
}

export interface Expected {
  slots: number[]
  /** `<day> <kind>` */
  notes: string[]
}

export function expectedOf(made: Made, { from, until, labels }: Window): Expected {
  const matches = (label: number): boolean => {
    const date = new Date(label)
    return made.minutes.has(date.getUTCMinutes()) && made.hours.has(date.getUTCHours()) && made.hasDay(date)
  }
  const instants = new Map<number, number[]>()
  for (const [index, label] of labels.entries())
    instants.set(label, [...(instants.get(label) ?? []), from + index * MINUTE])
  const slots = new Set<number>()
  const notes = new Set<string>()
  for (let label = labels[0]!; label <= labels.at(-1)!; label += MINUTE) {
    if (!matches(label)) continue
    const day = new Date(label).toISOString().slice(0, 10)
    const found = instants.get(label) ?? []
    if (found.length === 0) {
      notes.add(`${day} ${made.fixed ? 'moved' : 'missing'}`)
      if (made.fixed) slots.add(from + labels.findIndex(other => other > label) * MINUTE)
    } else if (made.fixed) slots.add(found[0]!)
    else {
      for (const slot of found) slots.add(slot)
      if (found.length > 1) notes.add(`${day} twice`)
    }
  }
  // The edges are left out: what is due before the window may be moved into it.
  const inner = [...slots].filter(slot => slot > from + DAY / 2 && slot <= until - DAY / 2)
  return { slots: inner.sort((a, b) => a - b), notes: [...notes] }
}

interface Values {
  text: string
  values: Set<number>
}

function listOf(random: Random, near: number, least: number, most: number): Values {
  const texts: string[] = []
  const values = new Set<number>()
  const add = (text: string, from: number, to: number, step: number) => {
    texts.push(text)
    for (let value = from; value <= to; value += step) values.add(value)
  }
  const some = () =>
    random.once(2)
      ? least + random.below(most - least + 1)
      : Math.min(most, Math.max(least, near - 1 + random.below(3)))
  for (let count = 1 + random.below(3); count > 0; count--) {
    const [one, other] = [some(), some()].sort((a, b) => a - b) as [number, number]
    const step = 1 + random.below(Math.min(20, most - least))
    const form = random.below(5)
    if (form === 0) add(`${one}-${other}`, one, other, 1)
    else if (form === 1) add(`${one}-${other}/${step}`, one, other, step)
    else add(String(one), one, one, 1)
  }
  return { text: texts.join(','), values }
}

function fieldOf(random: Random, near: number, least: number, most: number, stars: number): Values {
  const all = (step: number) => {
    const values = new Set<number>()
    for (let value = least; value <= most; value += step) values.add(value)
    return values
  }
  const form = random.below(10)
  if (form >= stars) return listOf(random, near, least, most)
  if (random.once(2)) return { text: '*', values: all(1) }
  const step = 1 + random.below(Math.min(30, most - least + 1))
  return { text: `*/${step}`, values: all(step) }
}

/** A random pattern, most of whose times are near the change of `window`. */
export function randomPattern(random: Random, { change, from, labels }: Window): Made {
  const near = new Date(labels[(change - from) / MINUTE + random.below(120) - 60]!)
  const stars = random.below(3) * 3
  const minute = fieldOf(random, near.getUTCMinutes(), 0, 59, stars)
  const hour = fieldOf(random, near.getUTCHours(), 0, 23, stars)
  const month = random.once(4) ? listOf(random, near.getUTCMonth() + 1, 1, 12) : fieldOf(random, 1, 1, 12, 10)
  const day = random.once(4) ? listOf(random, near.getUTCDate(), 1, 31) : { text: '*', values: new Set<number>() }
  const weekday = random.once(4) ? listOf(random, near.getUTCDay(), 0, 7) : { text: '*', values: new Set<number>() }
  const last = day.text !== '*' && random.once(4)
  const nth = weekday.text !== '*' && random.once(3) ? 1 + random.below(6) : 0
  const nthDay = near.getUTCDay()

  const onDay = (date: Date): boolean => {
    const tomorrow = new Date(date.getTime() + DAY)
    return day.values.has(date.getUTCDate()) || (last && tomorrow.getUTCDate() === 1)
  }
  const onWeekday = (date: Date): boolean => {
    const today = date.getUTCDay()
    if (weekday.values.has(today) || (today === 0 && weekday.values.has(7))) return true
    if (nth === 0 || today !== nthDay) return false
    if (nth === 6) return new Date(date.getTime() + 7 * DAY).getUTCMonth() !== date.getUTCMonth()
    return date.getUTCDate() > (nth - 1) * 7 && date.getUTCDate() <= nth * 7
  }
  const hasDay = (date: Date): boolean => {
    if (!month.values.has(date.getUTCMonth() + 1)) return false
    if (day.text === '*') return weekday.text === '*' || onWeekday(date)
    return weekday.text === '*' ? onDay(date) : onDay(date) || onWeekday(date)
  }
  const texts = [
    minute.text,
    hour.text,
    `${day.text}${last ? ',L' : ''}`,
    month.text,
    `${weekday.text}${nth === 0 ? '' : nth === 6 ? `,${nthDay}L` : `,${nthDay}#${nth}`}`,
  ]
  const fixed = !minute.text.includes('*') && !hour.text.includes('*')
  return { text: texts.join(' '), minutes: minute.values, hours: hour.values, hasDay, fixed }
}
