// Limits the work of one evaluation, whatever the expression, the schema and the data are. Every step is charged in advance by the
// size of its arguments. One unit is about 100 ns on a slow machine, so the whole budget is about 100 ms.

const BUDGET = 1_000_000
/** How many characters native code passes over for one unit. */
const CHARACTERS_PER_UNIT = 32
const ERROR_COST = 100

/** Thrown when the budget is used up. Nothing in an expression or a schema catches it. */
export class Refusal extends Error {}

export class Work {
  #left: number

  constructor(most = BUDGET) {
    this.#left = most
  }

  spend(units: number, refusal = 'this takes too many steps: let it work on less data'): void {
    this.#left -= units
    if (this.#left < 0) throw new Refusal(refusal)
  }

  /** Charges a pass over a value: its characters or its items, but not the contents of the items. */
  pass(value: unknown): void {
    this.spend(extent(value))
  }

  /** Charges `times` passes over a text. */
  passText(text: string, times: number): void {
    this.spend(Math.ceil((text.length * times) / CHARACTERS_PER_UNIT))
  }

  /** Charges an error, because creating one takes time, and `||`, `&&`, `all` and `exists` continue after it. */
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
