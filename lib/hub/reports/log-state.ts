// How much of the log of a run the hub has: all of it, or which lines are missing, and which are still to come. A daemon
// sends the lines of a run in order, and says how many there are. Pure.

import type { SyncChange } from '../../wire/records/changes.ts'
import type { LineRange } from '../../wire/records/run-records.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import type { ReportedRun } from './runs.ts'

/** The columns of a run that say how much of its log the hub has. */
const STATE = ['log_lines', 'log_last', 'log_missing', 'log_ended'] as const
type LogColumns = Pick<ReportedRun, (typeof STATE)[number]>

/** All that the hub fills from the lines of a log. */
export const LOG_COLUMNS = [...STATE, 'log_kept', 'log_bytes', 'log_cut'] as const

/** At most this many ranges are kept apart. Beyond that, the nearest two become one. */
const MOST_RANGES = 100

/** The columns after lines have arrived. */
export function logStateWithLines(known: LogColumns, { lines, ended, last, ...range }: SyncChange<'log'>): LogColumns {
  const numbers = lines.map(({ seq }) => seq).sort((a, b) => a - b)
  const to = range.to ?? numbers.at(-1) ?? known.log_last
  // Lines between the last ones and these were in a change that was refused.
  const fresh = gapsBetween(numbers, known.log_last + 1, to)
  const before = (known.log_missing ?? []).flatMap(gap => gapsBetween(numbers, gap.from, gap.to))
  const missing = joinNearestRanges(MOST_RANGES, [...before, ...fresh])
  const log_last = Math.max(known.log_last, to)
  return {
    log_last,
    log_lines: last === undefined ? known.log_lines : Math.max(known.log_lines ?? 0, last),
    log_missing: missing.length === 0 ? null : missing,
    log_ended: ended ?? known.log_ended,
  }
}

/** What `numbers`, which are sorted, leave out of a range. */
function gapsBetween(numbers: readonly number[], from: number, to: number): LineRange[] {
  const gaps: LineRange[] = []
  let next = from
  for (const number of numbers) {
    if (number < next) continue
    if (number > to) break
    if (number > next) gaps.push({ from: next, to: number - 1 })
    next = number + 1
  }
  if (next <= to) gaps.push({ from: next, to })
  return gaps
}

function joinNearestRanges(limit: number, ranges: LineRange[]): LineRange[] {
  const kept = ranges.toSorted((a, b) => a.from - b.from)
  while (kept.length > limit) {
    const between = (at: number) => kept[at]!.from - kept[at - 1]!.to
    let nearest = 1
    for (let at = 2; at < kept.length; at++) if (between(at) < between(nearest)) nearest = at
    kept.splice(nearest - 1, 2, { from: kept[nearest - 1]!.from, to: kept[nearest]!.to })
  }
  return kept
}

/** What a reply says of the log of a run beside its lines. */
export function logStateOf(run: ReportedRun) {
  const { log_last, log_lines, log_missing, log_ended, log_kept: kept, log_cut: cut } = run
  const missing = log_missing ?? []
  // No daemon has begun a run without a daemon, so its log is empty.
  const hasEnded = run.daemon_id === null ? ENDED_RUN_STATES.includes(run.state) || null : log_ended
  const reached = log_last >= (log_lines ?? 0)
  if (hasEnded === null || kept) return { complete: kept ? false : null, missing, to_come: null, kept, cut }
  const to_come = hasEnded && reached ? null : { from: log_last + 1, to: reached ? null : log_lines }
  return { complete: to_come === null && missing.length === 0, missing, to_come, kept, cut }
}

/** Whether lines are still to come of a run that has ended. */
export function awaitsLines(run: ReportedRun): boolean {
  return !run.log_kept && run.log_ended !== null && logStateOf(run).to_come !== null
}
