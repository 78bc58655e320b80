// Looks at something again and again, such as a table. A look that takes longer than the time between two has no other one
// beside it.

/** Whoever needs what a look finds looks by itself, so one that fails is tried again and nothing is said of it. */
export function lookAgain(look: () => Promise<void>, everyMs: number): { stop(): Promise<void> } {
  let looking: Promise<void> | null = null
  const timer = setInterval(() => {
    looking ??= look()
      .catch(() => {})
      .finally(() => {
        looking = null
      })
  }, everyMs)
  timer.unref()
  return {
    async stop() {
      clearInterval(timer)
      await looking
    },
  }
}
