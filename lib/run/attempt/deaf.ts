// Agents that do not heed their signal: an attempt ends without them.

import { AgentError } from '../../agent/define.ts'

/** How long an agent has to stop once it was asked to. A cancel promises five seconds for all. */
export const GRACE_MS = 4_000

/** The result of `work`. Throws an AgentError when `signal` has fired and `work` goes on for `grace` milliseconds more. */
export async function unlessDeaf<T>(work: Promise<T>, signal: AbortSignal, grace = GRACE_MS): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  let timer: Timer | undefined
  const ask = () => {
    timer = setTimeout(() => {
      const message = `the agent did not stop within ${grace / 1_000} s after it was asked to`
      reject(new AgentError(message, { code: 'aborted', cause: signal.reason }))
    }, grace)
  }
  if (signal.aborted) ask()
  else signal.addEventListener('abort', ask, { once: true })
  // Whatever it comes to later has nobody who hears it.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', ask)
  }
}
