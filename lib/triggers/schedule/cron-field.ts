// One field of a cron pattern, read into the values that it stands for. What is refused says what to write instead.

import { listed } from '../../text/spelling.ts'

export interface Field {
  text: string
  /** Sorted, each once. Weekdays are 0 (Sunday) to 6. */
  values: readonly number[]
  /** Is `*`, which restricts nothing. */
  isAny: boolean
  /** Of the day: `L`, the last one of the month. */
  lastDay: boolean
  /** Of the weekday: `5#2` is the second Friday of the month, `5L` (`which` is 0) the last one. */
  nth: readonly { weekday: number; which: number }[]
}

interface Part {
  name: string
  least: number
  most: number
  /** What may be written instead of a number, from `least` on. */
  names: readonly string[]
}

export const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June'].concat([
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
])
export const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

const short = (name: string): string => name.slice(0, 3).toUpperCase()
const DAY: Part = { name: 'day', least: 1, most: 31, names: [] }
const WEEKDAY: Part = { name: 'weekday', least: 0, most: 6, names: WEEKDAYS.map(short) }

/** The five fields in the order in which they are written. */
export const PARTS: readonly Part[] = [
  { name: 'minute', least: 0, most: 59, names: [] },
  { name: 'hour', least: 0, most: 23, names: [] },
  DAY,
  { name: 'month', least: 1, most: 12, names: MONTHS.map(short) },
  WEEKDAY,
]

/** Why a field is refused. */
export class Refused extends Error {}

/** Throws `Refused`. */
export function parseField(text: string, part: Part): Field {
  const values = new Set<number>()
  const nth: Field['nth'][number][] = []
  let lastDay = false
  for (const item of text.split(',')) {
    const ofWeekday = part === WEEKDAY ? /^([^#]+?)(?:#([0-9]+)|L)$/i.exec(item) : null
    if (part === DAY && item.toUpperCase() === 'L') lastDay = true
    else if (ofWeekday) nth.push(nthOf(item, ofWeekday[1]!, ofWeekday[2]))
    else for (const value of valuesOf(item, part)) values.add(part === WEEKDAY ? value % 7 : value)
  }
  return { text, values: [...values].sort((a, b) => a - b), isAny: text === '*', lastDay, nth }
}

function nthOf(item: string, word: string, which: string | undefined): { weekday: number; which: number } {
  const weekday = numberOf(word, WEEKDAY)
  if (weekday === null) throw refused(WEEKDAY, item, 'write one weekday before it, such as `5#2` or `5L`')
  if (which !== undefined && !/^[1-5]$/.test(which)) throw refused(WEEKDAY, item, 'write `#1` to `#5`')
  return { weekday: weekday % 7, which: Number(which ?? 0) }
}

function valuesOf(item: string, part: Part): number[] {
  const { least, most } = part
  const matched = /^(?:(\*)|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:\/([0-9]+))?$/i.exec(item)
  if (!matched) throw refused(part, item, adviceOn(item, part))
  const [, star, first, last, by] = matched
  const size = most - least + 1
  const step = by === undefined ? 1 : Number(by)
  if (step < 1 || step > size) throw refused(part, item, `write a step of 1 to ${size}`)
  if (star) return stepped(least, most, step)

  const from = numberOf(first!, part)
  if (from === null) throw refused(part, item, adviceOn(item, part))
  if (last === undefined) {
    if (by !== undefined) throw refused(part, item, `write \`${first}-${most}/${by}\``)
    return [from]
  }
  // `FRI-SUN` ends with the Sunday that follows.
  const to = part === WEEKDAY && last.toUpperCase() === 'SUN' ? 7 : numberOf(last, part)
  if (to === null) throw refused(part, item, adviceOn(item, part))
  if (from > to) throw refused(part, item, `a range does not go backwards: write \`${from}-${most},${least}-${to}\``)
  return stepped(from, to, step)
}

function stepped(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step)
}

function numberOf(word: string, part: Part): number | null {
  const named = part.names.indexOf(word.toUpperCase())
  if (named !== -1) return part.least + named
  if (!/^[0-9]{1,2}$/.test(word)) return null
  const value = Number(word)
  return value >= part.least && value <= highest(part) ? value : null
}

/** 7 is Sunday, too. */
const highest = (part: Part): number => (part === WEEKDAY ? 7 : part.most)

function adviceOn(item: string, part: Part): string {
  if (item === '') return 'remove the comma, or write a value beside it'
  if (item.includes('?')) return 'write `*`'
  if (/^H(\W|$)/i.test(item)) return 'write a number; `jitter` spreads the starts of many schedules'
  if (/^([0-9]+|L)W$/i.test(item)) return 'the nearest working day is not supported; write days or weekdays'
  if (item.startsWith('+')) return `write \`${item.slice(1)}\`; a day and a weekday that are both given mean either`
  if (item.toUpperCase() === 'L') return 'write `5L` for the last Friday; `L` alone is a day'
  const names = part.names.length > 0 ? ` or ${part.names[0]} to ${part.names.at(-1)}` : ''
  return `write ${part.least} to ${highest(part)}${names}, a list, a range such as \`1-3\`, or a step such as \`*/2\``
}

function refused(part: Part, item: string, advice: string): Refused {
  return new Refused(`${part.name} \`${item}\`: ${advice}`)
}

/** The names of the fields, for messages: `minute, hour, day, month and weekday`. */
export const FIELD_NAMES = listed(PARTS.map(({ name }) => name))
