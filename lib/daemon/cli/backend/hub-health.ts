// What a hub says of itself to everybody (`/health`, `/ready`), as `status` tells it: whether it answers, what keeps it from
// part of its work, and how far its clock is ahead of the one here.

import { formatDuration } from '../../../duration.ts'
import { isObject } from '../../../json.ts'
import { whyProxy } from '../../../wire/call.ts'
import { whyUnanswered } from '../../link/hub-client.ts'

/** A hub that does not answer within this time is away. A proxy may look for a hub that is ready for five seconds. */
const PATIENCE_MS = 7_000
/** The clock of the hub is known to within this time. */
const UNSURE_MS = 5_000

export interface HubHealth {
  answers: boolean
  /** Why it does not answer, as this program found it; null while it answers. */
  error: string | null
  /** How far its clock is ahead of this one, in milliseconds; 0 below `UNSURE_MS`. Null: the hub does not say. */
  ahead: number | null
  older_copy: string | null
  /** What else keeps it from part of its work, with what to do. */
  impaired: string[]
}

export async function healthOf(hubUrl: string): Promise<HubHealth> {
  const url = hubUrl.replace(/\/+$/, '')
  const before = Date.now()
  try {
    const reply = await fetch(`${url}/health`, { signal: AbortSignal.timeout(PATIENCE_MS) })
    const body: unknown = await reply.json().catch(() => null)
    // The header has whole seconds and is made once a second, later by a busy hub.
    const ahead = Date.parse(reply.headers.get('date') ?? '') + 500 - (before + Date.now()) / 2
    return {
      answers: reply.ok,
      error: reply.ok
        ? null
        : isObject(body)
          ? `the hub at ${url} answers with status ${reply.status}`
          : ofAnother(url, reply.status),
      ahead: Number.isNaN(ahead) ? null : Math.abs(ahead) < UNSURE_MS ? 0 : Math.round(ahead),
      ...(reply.ok ? await readinessOf(url) : NOTHING_SAID),
    }
  } catch (error) {
    return { answers: false, error: whyUnanswered(url, error), ahead: null, ...NOTHING_SAID }
  }
}

const NOTHING_SAID: Readiness = { older_copy: null, impaired: [] }
type Readiness = Pick<HubHealth, 'older_copy' | 'impaired'>

/** What answered by itself, in place of a hub. */
const ofAnother = (url: string, status: number): string =>
  status >= 502 ? whyProxy(url, status, 'hub') : `${url} answers with status ${status}, but not as a hub does`

async function readinessOf(url: string): Promise<Readiness> {
  const reply = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(PATIENCE_MS) })
  const body: unknown = await reply.json().catch(() => null)
  const { data, error } = isObject(body) ? body : {}
  if (isObject(error) && typeof error.message === 'string') {
    return { older_copy: null, impaired: [`the hub at ${url} is ${error.message}`] }
  }
  const said = isObject(data) ? data : {}
  return { older_copy: typeof said.older_copy === 'string' ? said.older_copy : null, impaired: impairedBy(said) }
}

const DEGRADED: Readonly<Record<string, string>> = {
  database_read_only:
    'the database of the hub is read-only, as a standby is: reads work, and changes are refused until it takes writes again',
  database_full:
    'the disk of PostgreSQL, the database of the hub, is full: reads work, and changes are refused until there is room again',
}

const REFUSED: Readonly<Record<string, string>> = {
  wrong_key: 'its CADRE_HUB_KEY lacks a key that the others have',
  no_key: 'it has no CADRE_HUB_KEY',
}

function impairedBy(said: Record<string, unknown>): string[] {
  const { degraded, clocks_apart_ms: apart, lack_key: lack, wake_ups, refused_starts: refused } = said
  const reasons = Array.isArray(degraded) ? degraded.map(String) : []
  return [
    ...reasons.map(reason => DEGRADED[reason] ?? `the hub is degraded: ${reason}`),
    ...(typeof apart === 'number' ? [`the clocks of hubs differ by ${formatDuration(apart)}: set them by NTP`] : []),
    ...(Array.isArray(lack)
      ? [`${lack.length} of the hubs lack the first key of CADRE_HUB_KEY; start them with it beside the one before`]
      : []),
    ...(Array.isArray(refused) ? refused.map(String) : []).map(
      reason =>
        `a hub on the same database does not start: ${REFUSED[reason] ?? reason}; the alert CadreHubRefused and the logs of the other hubs name its machine`,
    ),
    ...(wake_ups === 'polled'
      ? ['the hub polls its database, as behind a pooler: set CADRE_HUB_POOLER=transaction there if that is meant']
      : []),
  ]
}
