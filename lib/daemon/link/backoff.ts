// How long the link waits before it tries again: longer after each failure, and never in step with other daemons.

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

/** Milliseconds to wait after `failures` failures in a row. */
export function retryPause(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + Math.random() / 2)
}
