// Times of the hub's records: some are in the future, and some are texts.

import { now, When } from '../../kit/time.tsx'

/** A moment that may be in the future. */
export function Until({ at }: { at: number | null }) {
  if (at === null || at <= now.value) return <When at={at} />
  const date = new Date(at)
  const hours = Math.ceil((at - now.value) / 3_600_000)
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {hours < 48 ? `in ${hours} h` : `in ${Math.round(hours / 24)} days`}
    </time>
  )
}

export const timeOf = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso))
