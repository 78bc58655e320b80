// `--since`: how long ago (`10m`), or a time (`2026-05-02`, `2026-05-02T14:03`).

import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../../../duration.ts'

/** Epoch milliseconds. Throws for text that is neither a duration nor a time. */
export function sinceOf(text: string): number {
  const ago = parseDuration(text)
  if (ago !== null) return Date.now() - ago
  const at = /^\d{4}-\d{2}-\d{2}([T ]|$)/.test(text)
    ? new Date(text.length === 10 ? `${text}T00:00` : text).getTime()
    : Number.NaN
  if (!Number.isNaN(at)) return at
  throw new InvalidArgumentError('Expected how long ago, such as 10m or 2d, or a time, such as 2026-05-02T14:00.')
}
