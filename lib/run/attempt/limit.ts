// The clock of one attempt of a leaf phase. It is measured by the process, not by the time of day.

import { formatDuration } from '../../duration.ts'

const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Aborts `controller` when an attempt takes longer than `ms`; undefined is forever. Gives what calls it off. */
export function limit(controller: AbortController, ms: number | undefined): () => void {
  if (ms === undefined) return () => {}
  const over = () =>
    controller.abort(new DOMException(`the attempt took longer than ${formatDuration(ms)}`, 'TimeoutError'))
  const timer = setTimeout(over, Math.min(ms, LONGEST_TIMER_MS))
  return () => clearTimeout(timer)
}
