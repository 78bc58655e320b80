// Times as people read them: relative to now, with the exact time on hover.

import { signal } from '@preact/signals'
import { type RunTimes, tookMs } from '../../wire/records/words.ts'

/** The present time, updated once a second. Only the elements that show it are drawn again. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1_000)

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export const exactly = (at: Date): string => exact.format(at)

export function When({ at }: { at: number | null }) {
  if (at === null) return <span class="quiet">–</span>
  const date = new Date(at)
  return (
    <time dateTime={date.toISOString()} title={exactly(date)}>
      {agoOf(now.value - at)}
    </time>
  )
}

/** A time that may be in the future. */
export function UpcomingTime({ at }: { at: number | null }) {
  if (at === null || at <= now.value) return <When at={at} />
  const date = new Date(at)
  const minutes = Math.ceil((at - now.value) / 60_000)
  const hours = Math.ceil(minutes / 60)
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {minutes < 90 ? `in ${minutes} min` : hours < 48 ? `in ${hours} h` : `in ${Math.round(hours / 24)} days`}
    </time>
  )
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
