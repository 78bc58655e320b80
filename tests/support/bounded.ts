// Waits with a time limit: a test that would hang fails with a message that says what it waited for.

/** For tests that hang, not for a busy machine. */
const BOUND_MS = 30_000

/** What does not come at once is looked for less often, because each look takes a core from what is waited for. */
const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 40

/** The result of `work`. Throws when it takes longer than `ms`. */
export async function within<T>(work: Promise<T>, what: string, ms = BOUND_MS): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${what}: not within ${ms / 1_000} s`)), ms)
  // A failure after the time limit is ignored.
  work.catch(() => {})
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits until `condition` returns something other than false or undefined, and returns that value. */
export async function until<T>(
  condition: () => T | false | undefined | Promise<T | false | undefined>,
  what: string,
  ms = BOUND_MS,
): Promise<T> {
  const deadline = performance.now() + ms
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.3, LONGEST_PAUSE_MS)) {
    const value = await condition()
    if (value !== false && value !== undefined) return value
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms / 1_000} s`)
    await Bun.sleep(pause)
  }
}
