// `text.format(values)` as cel-go has it: %s %d %f %.2f %e %b %o %x %X %%.

import { currentEvaluation } from './evaluation.ts'
import { fromCel } from './values.ts'

const CLAUSE = /%(?:\.(\d{1,2}))?([sdfeboxX%])|%/g
const BASES: Record<string, number> = { b: 2, o: 8, x: 16, X: 16 }

/** Throws an Error that says what is wrong with the clauses or the values. */
export function format(text: string, values: readonly unknown[]): string {
  const { work } = currentEvaluation()
  let next = 0
  const formatted = text.replace(CLAUSE, (clause, precision: string | undefined, letter: string | undefined) => {
    if (letter === '%') return '%'
    if (letter === undefined) throw new Error(`format: \`%\` must be followed by one of s d f e b o x X %`)
    if (next >= values.length) throw new Error(`format: there is no value for \`${clause}\``)
    work.spend(8)
    return formatOne(values[next++], letter, precision === undefined ? 6 : Number(precision))
  })
  if (next < values.length) throw new Error(`format: ${values.length} values are given and ${next} are used`)
  return formatted
}

function formatOne(value: unknown, letter: string, precision: number): string {
  const { work } = currentEvaluation()
  if (letter === 's') {
    const plain = fromCel(value, work)
    return typeof plain === 'string' ? plain : JSON.stringify(plain)
  }
  if (letter === 'f' || letter === 'e') {
    const number = numberOf(value, letter)
    return letter === 'f' ? number.toFixed(precision) : number.toExponential(precision)
  }
  if (letter === 'd') {
    if (typeof value === 'bigint' || typeof value === 'number') return String(value)
    throw new Error('format: `%d` takes a number')
  }
  if (letter !== 'b' && typeof value === 'string') {
    work.passText(value, 8)
    return cased(Buffer.from(value).toString('hex'), letter)
  }
  const whole = typeof value === 'boolean' ? BigInt(value) : value
  if (typeof whole !== 'bigint') throw new Error(`format: \`%${letter}\` takes a whole number`)
  return cased(whole.toString(BASES[letter]), letter)
}

function cased(text: string, letter: string): string {
  return letter === 'X' ? text.toUpperCase() : text
}

function numberOf(value: unknown, letter: string): number {
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
  throw new Error(`format: \`%${letter}\` takes a number`)
}
