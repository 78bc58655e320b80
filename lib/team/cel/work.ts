// Bounds the work of one evaluation, whatever the expression and whatever the data: every step is paid for before it is
// taken, by the size of what it takes. One unit is about 100 ns on a slow machine, so that the whole budget is about 100 ms.

const MOST = 1_000_000
/** Of a text that is passed over once by native code. */
const CHARACTERS_PER_UNIT = 32
const ERROR_COST = 100

/** The budget is spent. Nothing in an expression catches it. */
export class Refusal extends Error {}

export class Work {
  #left: number

  constructor(most = MOST) {
    this.#left = most
  }

  spend(units: number, refusal = 'this takes too many steps: narrow what it works on'): void {
    this.#left -= units
    if (this.#left < 0) throw new Refusal(refusal)
  }

  /** A pass over a value that stands beside others: its characters or its items, not what is inside of them. */
  pass(value: unknown): void {
    this.spend(extent(value))
  }

  /** A pass over a text that reads `times` as much as its length. */
  passText(text: string, times: number): void {
    this.spend(Math.ceil((text.length * times) / CHARACTERS_PER_UNIT))
  }

  /** `||`, `&&`, `all` and `exists` go on after an error, and each error takes its time. */
  spendOnError(): void {
    this.spend(ERROR_COST)
  }
}

function extent(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return Math.ceil(value.length / CHARACTERS_PER_UNIT)
  if (Array.isArray(value)) return value.length
  if (value instanceof Map) return value.size
  return 0
}
