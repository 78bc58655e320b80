// The clock of one attempt of a leaf phase. It is measured by a timer of the process, not by the system clock.

import { formatDuration } from '../../duration.ts'
import { LONGEST_TIMER_MS } from '../../wait.ts'

/**
 * Aborts `controller` when an attempt takes longer than `ms`; undefined means no limit. Returns a function that cancels
 * it.
 */
export function limit(controller: AbortController, ms: number | undefined): () => void {
  if (ms === undefined) return () => {}
  const over = () =>
    controller.abort(new DOMException(`the attempt took longer than ${formatDuration(ms)}`, 'TimeoutError'))
  const timer = setTimeout(over, Math.min(ms, LONGEST_TIMER_MS))
  return () => clearTimeout(timer)
}
