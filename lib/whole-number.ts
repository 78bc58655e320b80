import { CadreError } from './error.ts'

/** `text` as a whole number. Throws `invalid_request`, which says what `name` takes: `CADRE_SLOTS: expected …`. */
export function wholeNumber(name: string, text: string, most: number, least = 0): number {
  const value = Number(text)
  if (/^[0-9]+$/.test(text) && value >= least && value <= most) return value
  throw new CadreError('invalid_request', `${name}: expected a whole number from ${least} to ${most}, got ${text}`)
}
