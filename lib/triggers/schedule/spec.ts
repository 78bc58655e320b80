// What a schedule is: one rule of three, and what becomes of slots that were missed. Everything that was written is
// checked at once, and what is left out is filled in, so that a stored schedule says all of itself.

import { A_DURATION, formatDuration, parseDuration } from '../../duration.ts'
import type { Detail } from '../../error.ts'
import { DAY_MS, daysOf, parseCron } from './cron.ts'
import { localText, periodsOf, plainText, zoneProblem } from './zone.ts'

/** What becomes of slots that are due too late. */
export type CatchUp = (typeof CATCH_UPS)[number]
const CATCH_UPS = ['none', 'last', 'all'] as const

/** The fields of a schedule as they stand in the body of a call or in team.yml. */
export interface ScheduleFields {
  cron?: string | undefined
  every?: string | undefined
  at?: string | undefined
  tz?: string | undefined
  from?: string | undefined
  catch_up?: string | undefined
  window?: string | undefined
  max?: number | undefined
  late_after?: string | undefined
  jitter?: string | undefined
}

/** When it is due. `from` is UTC to the minute; `at` is local in `tz`, or has an offset. */
export type Rule = { cron: string; tz: string } | { every: string; from: string } | { at: string; tz: string }

/** A schedule that was checked, as it is stored. */
export type ScheduleSpec = Rule & {
  catch_up: CatchUp
  /** How late a slot may be that `last` or `all` starts. */
  window: string
  /** How many slots `all` starts. */
  max: number
  /** How late a slot may be that `none` starts. */
  late_after: string
  jitter?: string
}

/** What the fields do not say. */
export interface Surroundings {
  /** Taken where no zone is written: that of the machine on a home, `UTC` in a realm. */
  tz: string
  /** Taken as `from` where none is written. */
  now: number
  /** The `overlap` of the trigger, on which `catch_up` depends. */
  overlap: string
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** The schedule, or everything that is wrong with it. Paths are those of a flat body: `/cron`. */
export function checkSchedule(
  fields: ScheduleFields,
  around: Surroundings,
): { spec: ScheduleSpec; problems?: never } | { spec?: never; problems: Detail[] } {
  const problems: Detail[] = []
  const refuse = (field: keyof ScheduleFields, message: string): null => {
    problems.push({ path: `/${field}`, message })
    return null
  }
  const rule = ruleOf(fields, around, refuse)
  const options = optionsOf(fields, around, refuse)
  if (rule !== null && options.jitter !== undefined) {
    const most = shortestDistance(rule) / 2
    if (parseDuration(options.jitter)! > most) {
      const [allowed, distance] = [most, most * 2].map(ms => formatDuration(ms))
      refuse('jitter', `must be at most ${allowed}, half of the shortest distance between two slots (${distance})`)
    }
  }
  return rule === null || problems.length > 0 ? { problems } : { spec: { ...rule, ...options } }
}

type Refuse = (field: keyof ScheduleFields, message: string) => null

function ruleOf(fields: ScheduleFields, around: Surroundings, refuse: Refuse): Rule | null {
  const { cron, every, at, from, tz = around.tz } = fields
  const given = (['cron', 'every', 'at'] as const).filter(name => fields[name] !== undefined)
  if (given.length === 0) return refuse('cron', 'is required, or `every`, or `at`: they say when the schedule is due')
  if (given.length > 1) return refuse(given[1]!, `stands beside \`${given[0]}\`: keep one of them`)
  if (from !== undefined && every === undefined) refuse('from', 'belongs to `every`: remove it')

  if (every !== undefined) return everyOf(every, fields, around, refuse)
  const problem = zoneProblem(tz)
  if (problem !== null) refuse('tz', problem)
  if (cron !== undefined) {
    const parsed = parseCron(cron)
    if (!('problems' in parsed)) return { cron: parsed.text, tz }
    for (const message of parsed.problems) refuse('cron', message)
    return null
  }
  return problem === null ? atOf(at!, tz, refuse) : null
}

function everyOf(every: string, { from, tz }: ScheduleFields, around: Surroundings, refuse: Refuse): Rule | null {
  if (tz !== undefined)
    refuse('tz', 'does not belong to `every`, which counts hours and not days: remove it, or use `cron`')
  const distance = parseDuration(every)
  if (distance === null) return refuse('every', `must be ${A_DURATION}`)
  if (distance < MINUTE_MS || distance % MINUTE_MS !== 0) return refuse('every', 'must be whole minutes, at least 1m')
  const start = from === undefined ? around.now : instantOf(from)
  if (start === null) return refuse('from', 'must be a time with an offset, such as 2026-11-23T06:00:00Z')
  return { every, from: `${plainText(Math.floor(start / MINUTE_MS) * MINUTE_MS)}Z` }
}

const TIME = /^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?$/

/** The instant of a time with an offset; null when it is none. */
function instantOf(text: string): number | null {
  if (!TIME.exec(text)?.[2]) return null
  try {
    return Temporal.Instant.from(text).epochMilliseconds
  } catch {
    return null
  }
}

function atOf(at: string, tz: string, refuse: Refuse): Rule | null {
  const example = 'must be a time such as 2026-12-01T09:00, or with an offset 2026-12-01T09:00+01:00'
  const [, minute, offset] = TIME.exec(at) ?? []
  if (minute === undefined) return refuse('at', example)
  if (offset !== undefined) return instantOf(at) === null ? refuse('at', example) : { at: `${minute}${offset}`, tz }
  let local: Temporal.PlainDateTime
  try {
    local = Temporal.PlainDateTime.from(minute, { overflow: 'reject' })
  } catch {
    return refuse('at', example)
  }
  const [first, last] = (['earlier', 'later'] as const).map(way => local.toZonedDateTime(tz, { disambiguation: way }))
  const [one, other] = [first!.epochMilliseconds, last!.epochMilliseconds]
  if (one === other) return { at: minute, tz }
  if (first!.toPlainDateTime().equals(local)) {
    return refuse('at', `${minute} is twice in ${tz}: write ${localText(one, tz)} or ${localText(other, tz)}`)
  }
  const [gap] = [...periodsOf(tz, one, other)].slice(-1)
  const [before, after] = [gap!.start + gap!.before - MINUTE_MS, gap!.start + gap!.offset]
  return refuse('at', `${minute} does not exist in ${tz}: write ${plainText(before)} or ${plainText(after)}`)
}

type Options = Pick<ScheduleSpec, 'catch_up' | 'window' | 'max' | 'late_after' | 'jitter'>

function optionsOf(fields: ScheduleFields, around: Surroundings, refuse: Refuse): Options {
  const { catch_up = 'none', window = '24h', max = 10, late_after = '5m', jitter } = fields
  if (!isCatchUp(catch_up)) refuse('catch_up', 'must be none, last or all')
  if (catch_up === 'all' && !['queue', 'allow'].includes(around.overlap)) {
    refuse('catch_up', 'all needs `overlap: queue` or `overlap: allow`, because the runs follow each other at once')
  }
  const between = (field: 'window' | 'late_after' | 'jitter', text: string, least: number, most: number): void => {
    const ms = parseDuration(text)
    if (ms === null) refuse(field, `must be ${A_DURATION}`)
    else if (ms < least) refuse(field, `must be at least ${formatDuration(least)}`)
    else if (ms > most) refuse(field, `must be at most ${formatDuration(most)}`)
  }
  between('window', window, MINUTE_MS, 30 * DAY_MS)
  between('late_after', late_after, MINUTE_MS, 24 * HOUR_MS)
  if (!Number.isInteger(max) || max < 1 || max > 100) refuse('max', 'must be a whole number from 1 to 100')
  if (jitter !== undefined) between('jitter', jitter, 1_000, Infinity)
  const known = isCatchUp(catch_up) ? catch_up : 'none'
  const valid = jitter !== undefined && parseDuration(jitter) !== null
  return { catch_up: known, window, max, late_after, ...(valid && { jitter }) }
}

const isCatchUp = (word: string): word is CatchUp => CATCH_UPS.some(known => known === word)

/** The shortest time between two slots by the text of the rule, in a year without changes of the clock. */
function shortestDistance(rule: Rule): number {
  if ('at' in rule) return Infinity
  if ('every' in rule) return parseDuration(rule.every)!
  const cron = parseCron(rule.cron)
  if ('problems' in cron) return Infinity
  const { times } = cron
  let shortest = Infinity
  for (const [index, time] of times.entries()) if (index > 0) shortest = Math.min(shortest, time - times[index - 1]!)
  let last: number | undefined
  for (const day of daysOf(cron, Date.UTC(2000, 0, 1) / DAY_MS, Date.UTC(2028, 11, 31) / DAY_MS)) {
    if (last !== undefined)
      shortest = Math.min(shortest, (day - last) * (DAY_MS / MINUTE_MS) + times[0]! - times.at(-1)!)
    last = day
  }
  return shortest * MINUTE_MS
}
