// How much a chore changes in one transaction: what the last ones took decides. On SQLite all other writes wait for it, and on
// PostgreSQL those that need the same rows, so it is to take a few hundredths of a second on any machine.

/** What a transaction is to take, half of what it may. */
const AIM_MS = 25
const FIRST = 50
const LEAST = 5
const MOST = 1_000
/** By how much the number shrinks and grows at most, because a single transaction may have waited for others. */
const SHRINK = 0.25
const GROW = 1.5

/** How many rows the next transaction changes, when one of `size` rows took `tookMs`. */
export function nextSize(size: number, tookMs: number): number {
  const factor = Math.min(GROW, Math.max(SHRINK, AIM_MS / Math.max(tookMs, 1)))
  return Math.round(Math.min(MOST, Math.max(LEAST, size * factor)))
}

export class BatchSize {
  #most = FIRST

  /** Does `work`, which changes at most as many rows as it is told. */
  async timed<T>(work: (most: number) => Promise<T>): Promise<T> {
    const began = performance.now()
    const result = await work(this.#most)
    this.#most = nextSize(this.#most, performance.now() - began)
    return result
  }
}
