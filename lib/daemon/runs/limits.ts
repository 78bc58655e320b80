// The limits of a daemon that its environment sets. Each throws `invalid_request` for a value that it cannot read.

import { A_DURATION, parseDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import { LOG_LIMIT } from '../../run/engine.ts'
import type { Settings } from '../../settings/settings.ts'
import { parseSize } from '../../size.ts'
import { wholeNumber } from '../../whole-number.ts'

export type Environment = Record<string, string | undefined>

const DEFAULT_SLOTS = 64

/** `CADRE_SLOTS`: how many leaf phases are executed at once. */
export function slotsOf(env: Environment): number {
  return wholeNumber('CADRE_SLOTS', env.CADRE_SLOTS || String(DEFAULT_SLOTS), 10_000, 1)
}

/** `CADRE_SETTLE`, or else the setting `settle`, in milliseconds; undefined where each action has its own. */
export function settleOf({ CADRE_SETTLE: given }: Environment, settings: Settings): number | undefined {
  const set = settings.value('settle')
  if (!given) return typeof set === 'string' ? (parseDuration(set) ?? undefined) : undefined
  const time = parseDuration(given)
  if (time !== null) return time
  throw new CadreError('invalid_request', `CADRE_SETTLE: expected ${A_DURATION}, got ${given}`)
}

/** `CADRE_LOG_LIMIT`, in bytes. */
export function logLimitOf({ CADRE_LOG_LIMIT: given }: Environment): number {
  if (!given) return LOG_LIMIT
  const limit = parseSize(given)
  if (limit !== null && limit > 0) return limit
  throw new CadreError('invalid_request', `CADRE_LOG_LIMIT: expected a size such as 64MiB, got ${given}`)
}
