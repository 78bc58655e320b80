// Times as people read them: as ages, with the exact time in the zone of the reader and in UTC on hover, or exactly.

import { computed, signal } from '@preact/signals'
import { type RunTimes, tookMs } from '../../wire/records/words.ts'
import { ahead } from './clock.ts'
import { Select } from './fields.tsx'

const tick = signal(Date.now())
setInterval(() => {
  if (!document.hidden) tick.value = Date.now()
}, 1_000)

/** The present time of the server, updated once a second. Only the elements that show it are drawn again. */
export const now = computed(() => tick.value + ahead.value)

export const zoneHere = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

const KEY = 'cadre-times'
/** How times are shown: '' as ages, `here` in the zone of the reader, or in UTC. */
const style = signal(localStorage.getItem(KEY) ?? '')

export function TimeStyle() {
  const set = (chosen: string) => {
    style.value = chosen
    localStorage.setItem(KEY, chosen)
  }
  return (
    <Select
      label="Times"
      value={style.value}
      set={set}
      of={[
        ['', 'as ages'],
        ['here', `in ${zoneHere()}`],
        ['UTC', 'in UTC'],
      ]}
    />
  )
}

/** The zone in which exact times are shown. */
export const shownZone = (): string => (style.value === 'UTC' ? 'UTC' : zoneHere())

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const STYLE = { dateStyle: 'medium', timeStyle: 'medium' } as const
const here = new Intl.DateTimeFormat(undefined, STYLE)
const utc = new Intl.DateTimeFormat(undefined, { ...STYLE, timeZone: 'UTC' })

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' })

const inUtc = (at: Date | number): string => `${utc.format(at)} UTC`

/** A time in the zone of the reader, which is named, and in UTC. */
export function exactly(at: Date): string {
  const zone = zoneHere()
  return zone === 'UTC' ? inUtc(at) : `${here.format(at)} ${zone}, ${inUtc(at)}`
}

/** `age`: how long ago it was, or how long it is until then. */
function Time({ at, age }: { at: number; age(): string }) {
  const date = new Date(at)
  return (
    <time dateTime={date.toISOString()} title={exactly(date)}>
      {style.value === '' ? age() : style.value === 'UTC' ? inUtc(at) : here.format(at)}
    </time>
  )
}

/** The time of day, such as 14:03. */
export const TimeOfDay = ({ at }: { at: number }) => <Time at={at} age={() => timeOfDay.format(at)} />

export function When({ at }: { at: number | null }) {
  if (at === null) return <span class="quiet">–</span>
  return <Time at={at} age={() => agoOf(now.value - at)} />
}

/** A time that may be in the future. */
export function UpcomingTime({ at }: { at: number | null }) {
  if (at === null || at <= now.value) return <When at={at} />
  return <Time at={at} age={() => untilOf(at - now.value)} />
}

function untilOf(ms: number): string {
  const minutes = Math.ceil(ms / 60_000)
  const hours = Math.ceil(minutes / 60)
  return minutes < 90 ? `in ${minutes} min` : hours < 48 ? `in ${hours} h` : `in ${Math.round(hours / 24)} days`
}

function agoOf(ms: number): string {
  for (const [unit, size] of UNITS) if (ms >= size) return relative.format(-Math.floor(ms / size), unit)
  return ms < 5_000 ? 'just now' : `${Math.floor(ms / 1_000)} seconds ago`
}

/** How long something took, or takes. */
export function Duration({ from, until }: { from: number | null; until: number | null }) {
  if (from === null) return <span class="quiet">–</span>
  return <span class="number">{durationOf((until ?? now.value) - from)}</span>
}

/** How long a run took, or takes. */
export function Took({ of: run }: { of: RunTimes }) {
  const ms = tookMs(run)
  return ms === null ? <Duration from={run.started_at} until={null} /> : <span class="number">{durationOf(ms)}</span>
}

export function durationOf(given: number): string {
  const ms = Math.max(0, given)
  if (ms < 1_000) return `${ms} ms`
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${(ms / 1_000).toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}
