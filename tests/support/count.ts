/** A count that a command was given, which has to be one: a proof of no rounds would prove nothing. */
export function countOf(given: string | undefined, usual: number): number {
  const count = given === undefined ? usual : Number(given)
  if (Number.isSafeInteger(count) && count > 0) return count
  console.error(`expected a whole number above 0, got ${given}`)
  process.exit(2)
}
