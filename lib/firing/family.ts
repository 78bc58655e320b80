// The firings of one occasion: the first one, and those that people had made of it again, which are named `<occasion>#<n>`.
// However many there are, the occasion starts one run, unless somebody asks for another. Pure.

import { CadreError } from '../error.ts'
import type { Firing } from './trigger.ts'

/** A firing, as far as others of its occasion matter. */
export type Relative = Pick<Firing, 'id' | 'occasion' | 'state' | 'run_id'>

/** How an occasion is fired once more. */
export interface Another {
  /** Starts a run even where the occasion has one. */
  again: boolean
}

/** Larger than the number of any firing. */
const MOST = 999_999_999

/** What the names of all firings of an occasion begin with. Nobody but cadre writes a number sign and a number at the end. */
export const familyOf = ({ occasion }: Pick<Firing, 'occasion'>): string => occasion.replace(/#\d+$/, '')

/** Their names are in this range, in whatever order a database has text; others may be too. */
export const rangeOf = (family: string): readonly [string, string] => [family, `${family}#${MOST}`]

/** The one that has the run of the occasion, or waits to start it. */
export const holderOf = <T extends Pick<Firing, 'state'>>(relatives: readonly T[]): T | undefined =>
  relatives.find(({ state }) => state === 'started') ?? relatives.find(({ state }) => state === 'waiting')

/** The name of one more firing. Throws `conflict` when the occasion has its run already, or waits for it. */
export function anotherName(family: string, relatives: readonly Relative[], { again }: Another): string {
  const holder = holderOf(relatives)
  if (!holder || again) return nextName(family, relatives)
  const { id, occasion, run_id } = holder
  const what = run_id === null ? 'waits to start' : `started run ${run_id}`
  throw new CadreError('conflict', `firing ${id} of ${occasion} ${what}: \`again\` starts another run`)
}

export function nextName(family: string, relatives: readonly Pick<Firing, 'occasion'>[]): string {
  const numbers = relatives.map(({ occasion }) => Number(occasion.slice(family.length + 1) || 1))
  return `${family}#${Math.max(1, ...numbers) + 1}`
}
