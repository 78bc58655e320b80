// What people have to do about a daemon before a run finds it out, in words for lists and pages.

import { formatDuration } from '../duration.ts'
import { sizeText } from '../size.ts'
import type { OfferedAgent } from './needs.ts'
import type { Standing } from './standing.ts'

/** A credential is named when it ends within this time. */
const SOON_MS = 14 * 86_400_000
/** Less free space than this is named. */
const LOW_DISK = 1_073_741_824
/** What waits for its hub for longer is named. */
const LATE_MS = 600_000

/** That something ends soon or has ended; null where that is not near. */
export function endWords(what: string, at: number, now: number): string | null {
  if (at - now > SOON_MS) return null
  const time = formatDuration(Math.abs(at - now))
  return at > now ? `${what} ends in ${time}` : `${what} ended ${time} ago`
}

interface Told {
  agents: readonly OfferedAgent[]
  standing?: Standing | null
  token_expires_at?: number | null
}

export function worriesOf({ agents, standing, token_expires_at: tokenEnd }: Told, now: number): string[] {
  const { disk_free: free, outbox, credentials_expire: credentials = [] } = standing ?? {}
  return [
    ...credentials.flatMap(({ name, at }) => endWords(`the credential of ${name}`, at, now) ?? []),
    ...(tokenEnd == null ? [] : [endWords('its realm token', tokenEnd, now) ?? []].flat()),
    ...(free != null && free < LOW_DISK ? [`${sizeText(free)} are free on its disk`] : []),
    ...(outbox?.oldest_at != null && now - outbox.oldest_at > LATE_MS
      ? [`${waitingWords(outbox)} wait for the hub since ${formatDuration(now - outbox.oldest_at)}`]
      : []),
    ...agents.filter(({ doctor }) => doctor === 'wrong').map(({ name }) => `agent ${name} is not ready`),
  ]
}

/** `2 changes and 1 file`. */
export function waitingWords({ changes, files }: { changes: number; files: number }): string {
  const count = (many: number, word: string) => (many === 0 ? [] : [`${many} ${word}${many === 1 ? '' : 's'}`])
  return [...count(changes, 'change'), ...count(files, 'file')].join(' and ') || 'nothing'
}
