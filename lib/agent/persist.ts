// Trying again, for agents whose client does not go through the guarded fetch (mail, object stores): the same waits, and
// the same rule that only a retryable AgentError is worth another try.

import { backoff } from './backoff.ts'
import { type AgentContext, AgentError } from './define.ts'
import { pause, unlessAborted } from './fetch.ts'

const ATTEMPTS = 4

/** The result of `work`, tried at most four times. Throws what the last try threw, or `aborted` when the run is stopped. */
export async function persist<T>(context: AgentContext<unknown>, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof AgentError && error.retryable) || attempt >= ATTEMPTS) throw error
      const wait = backoff(attempt, Math.random)
      context.log(`waiting: ${error.message}`, { attempt, wait_ms: wait })
      await pause(wait, context.signal)
    }
  }
}

/**
 * The result of `work`, when it comes within `timeout` milliseconds and before the run is stopped; the work itself goes on.
 * Throws an AgentError: `timeout` (retryable) or `aborted`, both with `sent` unknown.
 */
export async function within<T>(context: AgentContext<unknown>, timeout: number, work: Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(timeout)
  const { signal } = context
  try {
    return await unlessAborted(work, AbortSignal.any([signal, late]))
  } catch (cause) {
    if (signal.aborted) throw new AgentError('stopped', { code: 'aborted', sent: 'unknown', cause })
    if (!late.aborted) throw cause
    throw new AgentError(`no answer within ${timeout} ms`, { code: 'timeout', retryable: true, sent: 'unknown', cause })
  }
}
