// The names of maps in place, such as `@local/digest/each`. They stand in records of runs and nowhere else: what such a map
// does runs only as a part of the team around it.

import { CadreError } from '../error.ts'

/** With or without the scope, and with or without a range. */
const IN_PLACE = /^(@[^/@\s]+\/)?([^/@\s.]+)\/([^@\s]+?)(@[^/@\s]+)?$/

/** Whether this is the name of a map in place, with its scope. */
export const isInPlaceName = (named: string): boolean => IN_PLACE.exec(named)?.[1] !== undefined

/** Why there is no such team; null unless it is the name of a map in place. */
export function whyInPlace(named: string): string | null {
  const [, scope = '', name, phases, range = ''] = IN_PLACE.exec(named) ?? []
  if (name === undefined) return null
  const team = `${scope}${name}`
  return `${named} is the map \`${phases}\` of ${team}, which runs only as a part of it: name ${team}${range}`
}

/** Throws `invalid_request` where a team is asked for by the name of a map in place. */
export function refuseInPlace(named: string | undefined): void {
  const message = named === undefined ? null : whyInPlace(named)
  if (message !== null) throw new CadreError('invalid_request', message, { details: [{ path: '/team', message }] })
}
