// A cron pattern of five fields, read from its text, and the days of the calendar that it names. Local time only: what
// a zone makes of it is in slots.ts.

import { FIELD_NAMES, type Field, PARTS, parseField, Refused } from './cron-field.ts'

export interface Cron {
  /** As it is stored: nicknames expanded, one blank between fields. */
  text: string
  minute: Field
  hour: Field
  day: Field
  month: Field
  weekday: Field
  /** The minutes of a day that it names, sorted, counted from midnight. */
  times: readonly number[]
  /** Neither minute nor hour has a `*`: a time that a change of the clock skips is made up, one that it repeats is not. */
  fixed: boolean
}

export const DAY_MS = 86_400_000
const LONGEST_TEXT = 200

const NICKNAMES: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

/** The pattern, or every reason why it is none. */
export function parseCron(written: string): Cron | { problems: string[] } {
  if (written.length > LONGEST_TEXT) return { problems: [`must have at most ${LONGEST_TEXT} characters`] }
  const trimmed = written.replace(/^[ \t]+|[ \t]+$/g, '')
  const text = NICKNAMES[trimmed.toLowerCase()] ?? trimmed
  const texts = text.split(/[ \t]+/)
  if (texts.length !== PARTS.length || text === '') return { problems: [notFive(text, texts)] }

  const problems: string[] = []
  const fields = texts.map((field, index) => {
    try {
      return parseField(field, PARTS[index]!)
    } catch (thrown) {
      if (!(thrown instanceof Refused)) throw thrown
      problems.push(thrown.message)
      return null
    }
  })
  const [minute, hour, day, month, weekday] = fields
  if (!minute || !hour || !day || !month || !weekday) return { problems }

  const times = hour.values.flatMap(ofHour => minute.values.map(ofMinute => ofHour * 60 + ofMinute))
  const fixed = !`${minute.text}${hour.text}`.includes('*')
  const cron = { text: texts.join(' '), minute, hour, day, month, weekday, times, fixed }
  // Within 28 years every day of the calendar falls on every weekday.
  const [first] = daysOf(cron, Date.UTC(2000, 0, 1) / DAY_MS, Date.UTC(2028, 0, 1) / DAY_MS)
  if (first === undefined) return { problems: [`there is no such day: no month ${month.text} has a day ${day.text}`] }
  return cron
}

function notFive(text: string, texts: readonly string[]): string {
  const five = `write five fields: ${FIELD_NAMES}`
  if (text === '') return `is empty: ${five}, such as \`0 6 * * 1-5\``
  if (text.startsWith('@')) {
    return `\`${text}\` is not a time: write ${Object.keys(NICKNAMES).join(', ')}, or five fields: ${FIELD_NAMES}`
  }
  if (/^[0-9]{4}-[0-9]{2}-[0-9]{2}/.test(text))
    return `\`${text}\` is one point in time: write it as \`at\`, or ${five}`
  if (texts.length === 6) return `seconds are not supported; the shortest distance is a minute: ${five}`
  return `has ${texts.length} ${texts.length === 1 ? 'field' : 'fields'}: ${five}`
}

/** The days from `first` to `last` that match, in order. A day is a number: how many days it is after 1970-01-01. */
export function* daysOf(cron: Cron, first: number, last: number): Generator<number> {
  for (let day = first; day <= last; day++) {
    const date = new Date(day * DAY_MS)
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
    if (!cron.month.values.includes(month + 1)) day = Date.UTC(year, month + 1) / DAY_MS - 1
    else if (matches(cron, date, new Date(Date.UTC(year, month + 1, 0)).getUTCDate())) yield day
  }
}

/** Day or weekday when both are restricted. */
function matches({ day, weekday }: Cron, date: Date, daysInMonth: number): boolean {
  const ofMonth = date.getUTCDate()
  const ofWeek = date.getUTCDay()
  const byDay = day.values.includes(ofMonth) || (day.lastDay && ofMonth === daysInMonth)
  const byWeekday =
    weekday.values.includes(ofWeek) ||
    weekday.nth.some(nth => {
      if (nth.weekday !== ofWeek) return false
      return nth.which === 0 ? ofMonth > daysInMonth - 7 : nth.which === Math.ceil(ofMonth / 7)
    })
  if (day.isAny) return byWeekday
  return weekday.isAny ? byDay : byDay || byWeekday
}
