// Which secrets of a hook may fit at a time. Pure, so that a home and a hub do alike.

import { CadreError } from '../error.ts'
import type { Hook } from '../triggers/hook/fields.ts'
import { checkSecret } from '../triggers/hook/secrets.ts'
import { hookSpec } from './hook-kind.ts'

/** The secrets of a hook, as a body has them. */
export interface Secrets {
  secret?: string | undefined
  add_secret?: string | undefined
  expire_secret?: string | undefined
}

/** One more fits, or one does no longer, or both. */
export interface SecretChange {
  add?: string | undefined
  /** The id of one. */
  expire?: string | undefined
}

/** How many secrets of a hook fit at a time. */
const MOST = 2

/** `fitting`: those that fit until then. Throws `not_found`, and `conflict` when none or more than two would fit. */
export function mustBeChangeable(fitting: readonly { id: string }[], { add, expire }: SecretChange): void {
  if (expire !== undefined && !fitting.some(({ id }) => id === expire)) {
    throw new CadreError('not_found', `the hook has no secret ${expire} that fits`)
  }
  const after = fitting.length + (add === undefined ? 0 : 1) - (expire === undefined ? 0 : 1)
  if (after > MOST) {
    throw new CadreError('conflict', `a hook has at most ${MOST} secrets that fit: expire one with \`expire_secret\``)
  }
  if (after === 0) {
    throw new CadreError('conflict', 'it is the only secret of the hook: add another one with `add_secret`')
  }
}

/** Another scheme may need another form of them. Throws `invalid_request`. */
export function mustFitScheme(own: Hook, secrets: readonly string[]): void {
  const spec = hookSpec(own)
  const [wrong] = secrets.flatMap(value => checkSecret(spec, value, '/scheme').problems)
  if (!wrong) return
  const message = `the secret of the hook does not fit ${spec.scheme}: it ${wrong.message}`
  throw new CadreError('invalid_request', message, { details: [{ path: '/scheme', message }] })
}
