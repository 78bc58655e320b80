// Times of triggers: slots in their own zone, and occasions in the zone that a page has chosen.

import type { TriggerRecord } from '../../wire/records/triggers.ts'
import { shownZone, UpcomingTime } from '../kit/time.tsx'

const FIELDS = { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const
const formats = new Map<string, Intl.DateTimeFormat>()

/** Such as `Mon, 23 Nov, 06:00`. A zone that this browser does not know is replaced by its own. */
export function clockOf(at: number, tz = shownZone()): string {
  const format = formats.get(tz) ?? formatOf(tz)
  formats.set(tz, format)
  return format.format(at)
}

function formatOf(tz: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-GB', { ...FIELDS, timeZone: tz })
  } catch {
    return new Intl.DateTimeFormat('en-GB', FIELDS)
  }
}

/** The zone in which the times of a trigger are read. */
export const zoneOf = ({ tz }: Pick<TriggerRecord, 'tz'>): string => tz ?? shownZone()

const LOCAL = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(?::\d{2})?(.*)$/
const DAY = new Intl.DateTimeFormat('en-GB', {
  ...({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' } as const),
})

type SlotRecord = TriggerRecord['next'][number]

/** A slot as its zone writes it, with the offset, which tells the two of a repeated hour apart. */
export function Slot({ of: { at, local } }: { of: SlotRecord }) {
  const [, day, time, offset] = LOCAL.exec(local) ?? []
  if (day === undefined) return <time dateTime={new Date(at).toISOString()}>{local}</time>
  return (
    <time dateTime={new Date(at).toISOString()} title={`${new Date(at).toISOString().slice(0, 16)}Z`}>
      {DAY.format(Date.parse(`${day}T00:00Z`))}, {time} <span class="quiet small">{offset}</span>
    </time>
  )
}

/** Slots, each with how long it is until then. `known`: those that are not new; absent when none is marked. */
export function Slots({ of, known }: { of: readonly SlotRecord[]; known?: readonly SlotRecord[] }) {
  return (
    <ol class="slots">
      {of.map(slot => (
        <li key={slot.at}>
          <Slot of={slot} />
          <span class="quiet small">
            <UpcomingTime at={slot.at} />
            {known && !known.some(({ at }) => at === slot.at) && ' · new'}
          </span>
        </li>
      ))}
    </ol>
  )
}

/** Days on which a change of clocks moves, removes or doubles a slot, and what the scheme of a hook leaves open. */
export function Notes({ of = [] }: { of: TriggerRecord['notes'] }) {
  if (of.length === 0) return null
  return (
    <ul class="notes">
      {of.map(({ kind, text }) => (
        <li key={text}>
          {kind !== 'hook' && <strong>{kind} </strong>}
          <span class="wrap">{text}</span>
        </li>
      ))}
    </ul>
  )
}
