// Retries for agents whose client does not use the guarded fetch (mail, object stores). The waits are the same, and
// only a retryable AgentError is retried.

import { unlessAborted } from '../wait.ts'
import { backoff } from './backoff.ts'
import { type AgentContext, AgentError } from './define.ts'
import { pauseToRetry } from './fetch.ts'

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
      const wait = backoff(attempt, Math.random)
      context.log(`waiting: ${error.message}`, { attempt, wait_ms: wait })
      using _ = context.waiting(error.message)
      await pauseToRetry(wait, context.signal)
    }
  }
}

/**
 * The result of `work`, if it arrives within `timeout` milliseconds and before the run is stopped. Throws an AgentError
 * otherwise: `timeout` (retryable) or `aborted`, both with `sent: 'unknown'`. The work itself continues.
 */
export async function withDeadline<T>(context: AgentContext<unknown>, work: Promise<T>, timeout?: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const message = `no answer within ${timeout} ms`
  const error = () => new AgentError(message, { code: 'timeout', retryable: true, sent: 'unknown' })
  const timer = timeout === undefined ? undefined : setTimeout(() => reject(error()), timeout)
  try {
    return await unlessAborted(Promise.race([work, late]), context.signal)
  } catch (cause) {
    if (!context.signal.aborted) throw cause
    throw new AgentError('stopped', { code: 'aborted', sent: 'unknown', cause })
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The same stream. It fails as `withDeadline` does when the run is stopped, or when no byte arrives for `silence`
 * milliseconds.
 */
export function withSilenceLimit(
  context: AgentContext<unknown>,
  source: ReadableStream<Uint8Array>,
  silence: number,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  const cancel = (reason?: unknown) => reader.cancel(reason).catch(() => {})
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await withDeadline(context, reader.read(), silence)
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          void cancel(error)
          throw error
        }
      },
      cancel,
    },
    // A high-water mark of 0 keeps the stream from reading ahead of its consumer.
    { highWaterMark: 0 },
  )
}
