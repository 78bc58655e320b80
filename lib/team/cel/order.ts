// The order of values, for `sort`, `sortBy` and `math.greatest`.

import { currentEvaluation } from './evaluation.ts'

/** `list` in the order of `keys`: numbers, texts, bools, timestamps or durations, all of one kind. */
export function sortedBy(list: readonly unknown[], keys: readonly unknown[]): unknown[] {
  const { work } = currentEvaluation()
  const kinds = new Set(keys.map(kindOf))
  if (kinds.size > 1 || kinds.has('other'))
    throw new Error('the values to sort must be of one kind: numbers, texts, bools or times')
  // Measured: a comparison of numbers takes a quarter of a step.
  work.spend((keys.length * Math.ceil(Math.log2(keys.length + 2))) / 4)
  const compare = (a: number, b: number): number => {
    const [left, right] = [keys[a] as string, keys[b] as string]
    if (typeof left === 'string') work.pass(left.length < right.length ? left : right)
    return left < right ? -1 : left > right ? 1 : 0
  }
  return Array.from(keys, (_, at) => at)
    .sort(compare)
    .map(at => list[at])
}

/** The kind of a value. Values of one kind, except `other`, have an order. */
export function kindOf(value: unknown): string {
  if (typeof value === 'bigint' || typeof value === 'number') return 'number'
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value
  return value instanceof Date ? 'timestamp' : 'other'
}
