// How long nothing else could happen in this process. What a loaded machine takes from this thread is counted by the
// kernel, and allowed for.

import { existsSync, readFileSync } from 'node:fs'

/** 100 ms are promised; the rest is for a machine that has other things to do. */
export const LONGEST_GAP_MS = 250

const TICK_MS = 5
/** Of the main thread, in nanoseconds: the time that it ran, and the time that it could have run and waited for a core. */
const SCHEDULED = '/proc/self/schedstat'
const counted = existsSync(SCHEDULED)

/** Milliseconds until now in which another process had the core that this thread asked for. 0 where nobody counts them. */
function waited(): number {
  return counted ? Number(readFileSync(SCHEDULED, 'utf8').split(' ')[1]) / 1e6 : 0
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
