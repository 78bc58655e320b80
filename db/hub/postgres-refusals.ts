// What errors of PostgreSQL and of Bun's client for it mean to a hub and to those who call it.

import { CadreError } from '../../lib/error.ts'

export const busy = () =>
  new CadreError('unavailable', 'the hub has more to do than its database can; try again', { retryAfter: 1 })

export const tooLate = (cause?: unknown) =>
  new CadreError('unavailable', 'the database did not answer in time; try again', { cause, retryAfter: 1 })

export const away = (cause: unknown) =>
  new CadreError('unavailable', 'the database does not answer now; try again', { cause, retryAfter: 1 })

/**
 * What PostgreSQL says when it is well and does not do it, for people: the deadline of a statement, a server that takes no
 * writes or no connections, or not those of this hub (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
const REFUSALS: Readonly<Record<string, string>> = {
  '57014': 'the database did not answer in time; try again',
  '25006': 'the database takes no writes now: it is read-only, as a standby is; reads work',
  '53100': 'the disk of PostgreSQL is full: free some space there; reads work',
  '53200': 'the database has no memory left; try again',
  '53300': 'the database takes no more connections; try again',
  '28000': 'the database does not let the user of the hub in: correct CADRE_HUB_DATABASE, or what the database allows',
  '28P01': 'the database refuses the password of the hub: correct CADRE_HUB_DATABASE, and restart the hub',
  '3D000': 'the database of the hub is not there now; try again',
}

export function refusalOf(error: unknown): CadreError | null {
  const [state] = codesOf(error).filter(code => code in REFUSALS)
  return state === undefined ? null : new CadreError('unavailable', REFUSALS[state]!, { cause: error, retryAfter: 1 })
}

/**
 * Whether a connection has ended or can no longer be used, by Bun's code or by PostgreSQL's: statements prepared before a
 * table was changed work again on another connection.
 */
export function isLost(thrown: unknown): boolean {
  return codesOf(thrown).some(code => /^(ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)\w*|08\w{3}|57P\w{2})$/.test(code))
}

/** The codes of an error and of its causes. PostgreSQL's own is in `errno`. */
export function codesOf(thrown: unknown): string[] {
  const codes: string[] = []
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const { code, errno } = error as { code?: unknown; errno?: unknown }
    codes.push(String(errno), String(code))
    // "cached plan must not change result type", which has no code of its own.
    if (String(errno) === '0A000' && error.message.includes('cached plan')) codes.push('08000')
  }
  return codes
}
