// Retries for what the guarded fetch does not send (mail, databases, ssh) or cannot repeat by itself (the parts of an
// upload). The waits are the same, and only a retryable AgentError is retried.

import { backoff } from '../backoff.ts'
import { Limit } from '../lived-time.ts'
import { pause, unlessAborted } from '../wait.ts'
import type { AgentContext } from './agent-context.ts'
import { AgentError } from './core/agent-error.ts'

const ATTEMPTS = 4

/**
 * The result of `work`, which is attempted at most four times. Throws the error of the last attempt, or `aborted` when
 * the run is stopped.
 * @example const reply = await withRetries(context, () => client.send(message))
 */
export async function withRetries<T>(context: AgentContext<unknown>, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof AgentError && error.retryable) || attempt >= ATTEMPTS) throw error
      await waitToRetry(context, error.message, attempt)
    }
  }
}

/** Waits before attempt `attempt + 1`, and says why. Throws `aborted` when the run is stopped. */
export async function waitToRetry(
  { log, waiting, signal }: Pick<AgentContext, 'log' | 'waiting' | 'signal'>,
  why: string,
  attempt: number,
): Promise<void> {
  const wait = backoff(attempt - 1, { jitter: 1 })
  log(`waiting: ${why}`, { attempt, wait_ms: wait })
  using _ = waiting(why)
  await pauseToRetry(wait, signal)
}

/** Throws an AgentError `aborted`, of which nothing was sent, when `signal` fires first. */
export async function pauseToRetry(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, signal)
  if (!signal.aborted) return
  throw new AgentError('stopped while waiting to try again', { code: 'aborted', sent: 'no', cause: signal.reason })
}

/**
 * The result of `work`, if it arrives within `timeout` milliseconds and before the run is stopped. Throws an AgentError
 * otherwise: `timeout` (retryable) or `aborted`, both with `sent: 'unknown'`. The work itself continues.
 */
export async function withDeadline<T>(context: AgentContext<unknown>, work: Promise<T>, timeout?: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const message = `no answer within ${timeout} ms`
  const error = () => new AgentError(message, { code: 'timeout', retryable: true, sent: 'unknown' })
  using _ = timeout === undefined ? null : new Limit(timeout, () => reject(error()))
  try {
    return await unlessAborted(Promise.race([work, late]), context.signal)
  } catch (cause) {
    if (!context.signal.aborted) throw cause
    throw new AgentError('stopped', { code: 'aborted', sent: 'unknown', cause })
  }
}
