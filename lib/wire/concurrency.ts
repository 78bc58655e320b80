// The key that runs of a team hold, as team.yml declares it and as a hub stores it with a package.

import type { Static } from 'typebox'
import { Type } from '../schema/type.ts'
import { listed } from '../text/spelling.ts'

/** What becomes of a run whose key is taken: it waits, ends at once, or the oldest run of the key is cancelled. */
export const WHEN_FULL = ['queue', 'skip', 'cancel_oldest'] as const
export type WhenFull = (typeof WHEN_FULL)[number]

export const KEY_DEFAULTS = { limit: 1, when_full: 'queue' } as const

/** Maximum number of characters of a key. */
export const MAX_KEY = 200

export const ConcurrencyKey = Type.Object({
  /** As written, with its templates. */
  key: Type.String(),
  limit: Type.Integer(),
  when_full: Type.Enum([...WHEN_FULL]),
})
export type ConcurrencyKey = Static<typeof ConcurrencyKey>

/** The reason of a run that waits for its key. */
export const waitsForKey = (key: string): string => `waits for the key ${key}`

/** The runs that a message names. */
const MOST_NAMED = 3

/** What a run waits for, in words that follow "waits for". `ahead` is the number of runs that wait before it. */
export function turnOf(key: string, holders: readonly string[], ahead: number): string {
  const more = holders.length - MOST_NAMED
  const named = [...holders.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])]
  const before = ahead === 0 ? '' : `${ahead} ${ahead === 1 ? 'run that waits' : 'runs that wait'} before it`
  if (named.length === 0) return before || `its turn for the key ${key}`
  const held =
    named.length === 1
      ? `run ${named[0]}, which holds the key ${key}`
      : `runs ${listed(named)}, which hold the key ${key}`
  return before ? `${held}, and ${before}` : held
}

/** How a run ends that found its key full and does not wait. */
export function skippedFor(key: string, holder: string) {
  const message = `run ${holder} held the key ${key}, and the team says \`when_full: skip\``
  return { reason: 'skipped', error: { code: 'conflict', message } }
}

/** The reason of a run that was cancelled for a newer one of its key. */
export const supersededBy = (runId: string): string => `superseded by run ${runId}`
