// Zones: which names are taken, between which instants an offset lasts, and local texts. All of it is what the runtime
// knows of zones (`Intl` and `Temporal`).

import { didYouMean, type OtherNames } from '../../text/spelling.ts'

/** A time in which a zone has one offset. */
export interface Period {
  /** The instant at which it begins; -Infinity when there is no change before. */
  start: number
  /** The instant at which the next one begins, or Infinity. */
  end: number
  /** Local time minus UTC, in milliseconds. */
  offset: number
  /** The offset until `start`. */
  before: number
}

/** Short names that `Intl` knows. They are no places: some have no summer time where people expect it. */
const PLACES: OtherNames = {
  UTC: ['GMT', 'Z', 'utc', 'UCT', 'Zulu', 'GMT0', 'Greenwich', 'Universal'],
  'America/New_York': ['EST', 'EDT', 'EST5EDT', 'ET'],
  'America/Chicago': ['CST', 'CDT', 'CST6CDT', 'CT'],
  'America/Denver': ['MST', 'MDT', 'MST7MDT', 'MT'],
  'America/Los_Angeles': ['PST', 'PDT', 'PST8PDT', 'PT'],
  'Pacific/Honolulu': ['HST'],
  'Europe/Berlin': ['CET', 'CEST', 'MET', 'MEZ', 'MESZ'],
  'Europe/Athens': ['EET', 'EEST'],
  'Europe/Lisbon': ['WET', 'WEST'],
  'Europe/London': ['BST', 'GB'],
  'Asia/Kolkata': ['IST'],
  'Asia/Tokyo': ['JST', 'Japan'],
}

/** Why `tz` is refused; null when it is a zone. */
export function zoneProblem(tz: string): string | null {
  if (isZone(tz)) return null
  const example = 'write the name of a place such as Europe/Berlin, or UTC'
  if (tz === '') return `is empty: ${example}`
  if (/^(?:UTC|GMT)?[+-][0-9:]+$/.test(tz)) return `\`${tz}\` is an offset, which no place has all the year: ${example}`
  const known = [...Object.keys(PLACES), ...Intl.supportedValuesOf('timeZone')]
  return `\`${tz}\` is not a zone${didYouMean(tz, known, PLACES)}: ${example}`
}

function isZone(tz: string): boolean {
  if (tz !== 'UTC' && !/^[A-Za-z][\w+-]*(?:\/[\w+-]+)+$/.test(tz)) return false
  try {
    // `Temporal` alone takes a whole date with a zone as well.
    new Intl.DateTimeFormat('en', { timeZone: tz })
    return new Temporal.ZonedDateTime(0n, tz).timeZoneId !== ''
  } catch {
    return false
  }
}

/** The periods in which something of (`after`, `until`] lies, in order. */
export function* periodsOf(tz: string, after: number, until: number): Generator<Period> {
  const first = after + 1
  // `previous` leaves out a change at the instant itself.
  const start = dateIn(tz, first + 1).getTimeZoneTransition('previous')?.epochMilliseconds ?? -Infinity
  for (let period = periodFrom(tz, start, first); period.start <= until; ) {
    yield period
    if (period.end === Infinity) return
    const next = periodFrom(tz, period.end, period.end)
    if (next.end <= next.start) throw new Error(`the offsets of ${tz} do not go on after ${period.end}`)
    period = next
  }
}

/** The period that begins at `start`; `within` is an instant of it. */
function periodFrom(tz: string, start: number, within: number): Period {
  const date = dateIn(tz, within)
  const offset = offsetOf(date)
  const before = start === -Infinity ? offset : offsetOf(dateIn(tz, start - 1))
  return { start, end: date.getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity, offset, before }
}

const offsetOf = (date: Temporal.ZonedDateTime): number => date.offsetNanoseconds / 1_000_000

function dateIn(tz: string, instant: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(tz)
}

/** The local time of an instant, with its offset: `2026-03-29T03:00+02:00`. */
export function localText(instant: number, tz: string): string {
  return dateIn(tz, instant).toString({ smallestUnit: 'minute', timeZoneName: 'never' })
}

/** The local time as if it were UTC, without an offset: `2026-03-29T03:00`. */
export function plainText(local: number): string {
  return new Date(local).toISOString().slice(0, 16)
}

/** The zone in which a schedule is shown: `every` has none. */
export const zoneOf = (rule: object): string => ('tz' in rule && typeof rule.tz === 'string' ? rule.tz : 'UTC')
