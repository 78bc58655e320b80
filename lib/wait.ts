// Waits that can be ended early.

/** About 25 days. A timer for a longer time would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A pause of `ms` that `end` or `signal` can end early. It is over at once if the signal has already fired. */
export function startPause(ms: number, signal?: AbortSignal): { over: Promise<void>; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
    resolve()
  }
  const timer = setTimeout(end, ms)
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  return { over: promise, end }
}

/** Resolves after `ms`, or earlier when `signal` fires. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return startPause(ms, signal).over
}

/** Rejects with the signal's reason if the signal fires before `work` settles. The work itself continues. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
