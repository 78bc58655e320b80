// A schedule in words, for people: `at 06:00, Monday to Friday, Europe/Berlin`.

import { formatDuration, parseDuration } from '../../duration.ts'
import { listed } from '../../text/spelling.ts'
import { type Cron, parseCron } from './cron.ts'
import { type Field, MONTHS, WEEKDAYS } from './cron-field.ts'
import type { ScheduleSpec } from './spec.ts'

/** More times of a day than these are said by their minutes and hours. */
const LISTED_TIMES = 6
const ORDINALS = ['last', 'first', 'second', 'third', 'fourth', 'fifth']

export function wordsOf(spec: ScheduleSpec): string {
  if ('every' in spec) return `every ${formatDuration(parseDuration(spec.every)!)} from ${spec.from}`
  if ('at' in spec) return `once at ${spec.at}, ${spec.tz}`
  const cron = parseCron(spec.cron)
  if ('problems' in cron) return spec.cron
  return [timesIn(cron), daysIn(cron), ...monthsIn(cron.month), spec.tz].join(', ')
}

function timesIn({ minute, hour, times }: Cron): string {
  if (times.length <= LISTED_TIMES) return `at ${listed(times.map(time => clock(Math.floor(time / 60), time % 60)))}`
  const step = evenStep(minute, 60)
  const minutes =
    step === null ? `at ${counted('minute', minute.values)}` : step === 1 ? 'every minute' : `every ${step} minutes`
  if (hour.isAny) return step === null ? `every hour ${minutes}` : minutes
  const hours = evenStep(hour, 24)
  if (hours !== null && step === null) return hours === 1 ? `every hour ${minutes}` : `every ${hours} hours ${minutes}`
  const [first, last] = [hour.values[0]!, hour.values.at(-1)!]
  const isSpan = hour.values.length > 1 && last - first === hour.values.length - 1
  if (isSpan && step !== null) return `${minutes} from ${clock(first, 0)} to ${clock(last, minute.values.at(-1)!)}`
  return `${minutes} of ${counted('hour', hour.values)}`
}

/** The step of `*` or `*` with a step that divides the whole evenly. */
function evenStep({ text }: Field, whole: number): number | null {
  const step = text === '*' ? 1 : Number(/^\*\/([0-9]+)$/.exec(text)?.[1] ?? Number.NaN)
  return whole % step === 0 ? step : null
}

const clock = (hour: number, minute: number): string =>
  [hour, minute].map(part => String(part).padStart(2, '0')).join(':')

const counted = (what: string, values: readonly number[]): string =>
  `${what}${values.length === 1 ? '' : 's'} ${inRuns(values, String)}`

function daysIn({ day, weekday }: Cron): string {
  if (day.isAny && weekday.isAny) return 'every day'
  const words: string[] = []
  if (!day.isAny) {
    const parts = day.values.length > 0 ? [counted('day', day.values)] : []
    if (day.lastDay) parts.push('the last day')
    words.push(`on ${listed(parts)} of the month`)
  }
  if (!weekday.isAny) {
    // The week begins on Monday, so that a weekend is one run.
    const week = weekday.values.map(value => (value === 0 ? 7 : value)).sort((a, b) => a - b)
    const parts = week.length > 0 ? [inRuns(week, value => WEEKDAYS[value % 7]!)] : []
    for (const nth of weekday.nth) parts.push(`the ${ORDINALS[nth.which]} ${WEEKDAYS[nth.weekday]} of the month`)
    words.push(listed(parts))
  }
  return words.join(' or ')
}

const monthsIn = (month: Field): string[] =>
  month.isAny ? [] : [`in ${inRuns(month.values, value => MONTHS[value - 1]!)}`]

/** `Monday to Friday and Sunday`: three or more that follow each other are a run. */
function inRuns(values: readonly number[], nameOf: (value: number) => string): string {
  const runs: number[][] = []
  for (const value of values) {
    if (runs.at(-1)?.at(-1) === value - 1) runs.at(-1)!.push(value)
    else runs.push([value])
  }
  const words = runs.flatMap(run =>
    run.length > 2 ? [`${nameOf(run[0]!)} to ${nameOf(run.at(-1)!)}`] : run.map(value => nameOf(value)),
  )
  return listed(words)
}
