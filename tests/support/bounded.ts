// Waits that end: what would hang becomes a failure that says what was waited for.

const BOUND_MS = 10_000

/** What `work` gives; an error when that takes longer than `ms`. */
export async function within<T>(work: Promise<T>, what: string, ms = BOUND_MS): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${what}: not within ${ms / 1_000} s`)), ms)
  // What comes after the bound is nobody's any more.
  work.catch(() => {})
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves once `condition` gives something other than false or undefined, with that. */
export async function until<T>(
  condition: () => T | false | undefined | Promise<T | false | undefined>,
  what: string,
  ms = BOUND_MS,
): Promise<T> {
  const deadline = performance.now() + ms
  for (;;) {
    const value = await condition()
    if (value !== false && value !== undefined) return value
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms / 1_000} s`)
    await Bun.sleep(5)
  }
}
