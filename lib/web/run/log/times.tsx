// The times of lines: of the clock in the zone in which the page shows times, since the start of the run, or none.

import { Select } from '../../kit/fields.tsx'
import { preference } from '../../kit/preference.ts'
import { exactly, shownZone } from '../../kit/time.tsx'

const style = preference('line-times', ['clock', 'start', 'none'])

export function LineTimes() {
  return (
    <Select
      label="Line times"
      value={style.value}
      set={style.set}
      of={[
        ['clock', `in ${shownZone()}`],
        ['start', 'since the start'],
        ['none', 'none'],
      ]}
    />
  )
}

let clock = { zone: '', format: new Intl.DateTimeFormat() }

export function clockText(at: number): string {
  const zone = shownZone()
  if (zone !== clock.zone) {
    clock = { zone, format: new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: zone }) }
  }
  return clock.format.format(at)
}

/** A duration of any length in one form, so that those of lines stand below each other: `1:02:03.456`. */
export function sinceText(given: number): string {
  const ms = Math.max(0, given)
  const [hours, minutes, seconds] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, (ms % 60_000) / 1_000]
  return `${hours}:${String(minutes).padStart(2, '0')}:${seconds.toFixed(3).padStart(6, '0')}`
}

export function LineTime({ at, started }: { at: number; started: number }) {
  if (style.value === 'none') return null
  const date = new Date(at)
  return (
    <time class="quiet" dateTime={date.toISOString()} title={exactly(date)}>
      {style.value === 'start' ? sinceText(at - started) : clockText(at)}
    </time>
  )
}
