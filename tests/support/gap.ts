// Measures how long the event loop of this process was blocked. Time during which the thread waited for a core, which
// the kernel counts, is subtracted.

import { existsSync, readFileSync } from 'node:fs'

/** The promised limit is 100 ms; the rest is a margin for a busy machine. */
export const LONGEST_GAP_MS = 250

const TICK_MS = 5
const counted = existsSync('/proc/self/schedstat')

/**
 * Milliseconds during which the main thread of a process was ready to run but waited for a core. 0 on systems that do
 * not count this.
 */
export function waited(pid: number | 'self' = 'self'): number {
  if (!counted) return 0
  // The fields are in nanoseconds: the time that the thread ran, and the time that it waited for a core.
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
}

/** How long `work` takes in milliseconds, without the time during which the thread waited for a core. */
export function took(work: () => void): number {
  const now = () => performance.now() - waited()
  const begun = now()
  work()
  return now() - begun
}

/** The longest gap during `work` in milliseconds, without the time during which the thread waited for a core. */
export async function longestGap(work: () => Promise<unknown>): Promise<number> {
  const now = () => performance.now() - waited()
  let last = now()
  let gap = 0
  const look = () => {
    const at = now()
    gap = Math.max(gap, at - last)
    last = at
  }
  const timer = setInterval(look, TICK_MS)
  try {
    await work()
    look()
  } finally {
    clearInterval(timer)
  }
  return gap
}
