// How long nothing else could happen in this process. What a loaded machine takes from a thread is counted by the kernel,
// and allowed for.

import { existsSync, readFileSync } from 'node:fs'

/** 100 ms are promised; the rest is for a machine that has other things to do. */
export const LONGEST_GAP_MS = 250

const TICK_MS = 5
const counted = existsSync('/proc/self/schedstat')

/** Milliseconds in which the main thread of a process could have run and others had the cores. 0 where nobody counts them. */
export function waited(pid: number | 'self' = 'self'): number {
  if (!counted) return 0
  // In nanoseconds: the time that it ran, and the time that it waited for a core.
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
}

/** Milliseconds of the longest gap during `work`, without those in which the thread waited for a core. */
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
