// Repeatable random numbers (mulberry32), and the seed of a test. The seed is printed, and CADRE_TEST_SEED sets it.

export interface Random {
  /** A number x with 0 ≤ x < 1. */
  (): number
  /** A whole number below `n`. */
  below(n: number): number
  /** True with a probability of 1 in `n`. */
  once(n: number): boolean
  of<T>(list: readonly T[]): T
}

export function seedOf(test: string): number {
  const seed = Number(process.env.CADRE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`${test}: seed ${seed}`)
  return seed
}

export function randomFrom(seed: number): Random {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (n: number) => Math.floor(next() * n)
  return Object.assign(next, {
    below,
    once: (n: number) => below(n) === 0,
    of: <T>(list: readonly T[]): T => list[below(list.length)]!,
  })
}
