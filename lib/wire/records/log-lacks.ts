// What a hub does not have of the log of a run, in words, for commands and pages.

import type { LineRange } from './run-records.ts'

/** What a reply with lines says of the log. A daemon has all of its own logs, and says nothing. */
export interface LogState {
  complete?: boolean | null | undefined
  missing?: readonly LineRange[] | undefined
  to_come?: { from: number; to: number | null } | null | undefined
  cut?: boolean | undefined
  kept?: boolean | undefined
}

/** Null when the hub has everything. */
export function lackOf({ complete = null, missing = [], to_come = null, kept, cut }: LogState): string | null {
  if (complete) return null
  if (kept) return 'its daemon keeps the lines, because its setting `sync` is `status`'
  if (complete === null) return 'its daemon does not say whether these are all lines'
  const why = cut ? ', because the realm has used up its quota of log bytes' : ''
  const never = missing.length > 0 ? [`${lines(missing)} missing for good${why}`] : []
  if (to_come === null) return never.join('') || null
  const { from, to } = to_come
  const later = to === null ? `lines from ${from} on are` : lines([{ from, to }])
  return [...never, `${later} still to come`].join('; ')
}

/** The same of the lines that there are so far. Null also of a daemon, which says nothing of its own logs. */
export function lackSoFar(log: LogState): string | null {
  if (log.complete === undefined) return null
  return lackOf({ ...log, to_come: log.to_come?.to == null ? null : log.to_come })
}

function lines(ranges: readonly LineRange[]): string {
  const isOne = ranges.length === 1 && ranges[0]!.from === ranges[0]!.to
  const names = ranges.map(({ from, to }) => (from === to ? `line ${from}` : `lines ${from} to ${to}`))
  return `${names.join(', ')} ${isOne ? 'is' : 'are'}`
}
