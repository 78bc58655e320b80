// Ends attempts without waiting for agents that ignore their signal.

import { AgentError } from '../../agent/core/agent-error.ts'

/**
 * How long an agent has to stop after its signal has fired. A cancel promises to reach everything within five seconds.
 */
export const GRACE_MS = 4_000

/** The result of `work`. Throws an AgentError when `work` has not settled `grace` milliseconds after `signal` fired. */
export function withGrace<T>(work: Promise<T>, signal: AbortSignal, grace = GRACE_MS): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let timer: Timer | undefined
    const ask = () => {
      timer = setTimeout(() => {
        const message = `the agent did not stop within ${grace / 1_000} s after it was asked to`
        reject(new AgentError(message, { code: 'aborted', cause: signal.reason }))
      }, grace)
    }
    if (signal.aborted) ask()
    else signal.addEventListener('abort', ask, { once: true })
    const over = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', ask)
    }
    // A result that comes later is dropped.
    work.then(resolve, reject).finally(over)
  })
}
