// What records say, in words: for the terminal, messages and the pages, which load it without the schemas.

import { oneLine } from '../../text/one-line.ts'
import type { Waiting, Written } from './run-records.ts'
import type { StartedBy, StartedByView, Via } from './started-by.ts'

/** A wait in one text, such as `HTTP 503, until 14:03:10`. Times of another day have their date. */
export function waitText({ reason, until }: Waiting, now = Date.now()): string {
  if (until === null) return reason
  const at = new Date(until).toISOString()
  const isSoon = Math.abs(until - now) < 12 * 3_600_000
  return `${reason}, until ${isSoon ? at.slice(11, 19) : `${at.slice(0, 10)} ${at.slice(11, 16)}`} UTC`
}

/** How the line of an explanation begins that names the phases whose failure was tolerated. */
export const PASSED_OVER = 'Failed and passed over:'

export interface RunTimes {
  started_at: number | null
  completed_at: number | null
  lived_ms?: number | null | undefined
}

/**
 * How many milliseconds an ended run took: what its attempts lived, or the time between its start and its end where its
 * server does not count that. Null while it goes on, and for one that never began.
 */
export function tookMs({ started_at, completed_at, lived_ms = null }: RunTimes): number | null {
  if (started_at === null || completed_at === null) return null
  return lived_ms ?? Math.max(0, completed_at - started_at)
}

/** What a run waits for that `reviewers` may approve. */
export function approvalText(reviewers: readonly string[]): string {
  const isOpen = reviewers.length === 0 || reviewers.includes('any')
  return `an approval before anything of it begins${isOpen ? '' : `, by ${reviewers.join(' or ')}`}`
}

const FATE: Record<Written['state'], string> = {
  done: 'arrived',
  partial: 'arrived in part',
  sent: 'may or may not have arrived',
  unknown: 'may or may not have arrived',
  presumed: 'does not seem to have arrived',
}

/** What is known of a write, in words. */
export function fateOf({ state, copies = [], unconfirmed = false }: Written): string {
  if (copies.length > 0) {
    const others = copies.map(({ id, url }) => url ?? id ?? 'another').join(', ')
    return `arrived ${copies.length === 1 ? 'twice' : `${copies.length + 1} times`}: also ${others}`
  }
  return state === 'done' && unconfirmed ? 'arrived, not yet confirmed to be there only once' : FATE[state]
}

/** What people call a write, such as `each/ADA/post/reply.json`. */
export function nameOfWrite({ place, phase, entry }: Pick<Written, 'place' | 'phase' | 'entry'>): string {
  return [...place, phase, entry].filter(Boolean).join('/')
}

/** Those first of which nobody knows whether they arrived, or that arrived twice. */
export function doubtfulFirst(all: readonly Written[]): Written[] {
  const { open = [], done = [] } = Object.groupBy(all, write => (isCertain(write) ? 'done' : 'open'))
  return [...open, ...done]
}

/** Whether a write exists, and only once. */
export const isCertain = ({ state, copies = [], unconfirmed = false }: Written): boolean =>
  state === 'done' && copies.length === 0 && !unconfirmed

/** What `doctor` found of a credential. */
interface Found {
  text: string
  missing: readonly string[]
  needed_by?: readonly { permission: string; team: string; phase: string }[]
  unneeded?: readonly string[]
}

/** What a credential lacks, each with who needs it: `repo (phase publish of @acme/release, and 2 more)`; null for nothing. */
export function lackWords({ missing, needed_by = [] }: Found): string | null {
  const words = missing.map(permission => {
    const [first, ...more] = needed_by.filter(each => each.permission === permission)
    const others = more.length > 0 ? `, and ${more.length} more` : ''
    return first ? `${permission} (phase ${first.phase} of ${first.team}${others})` : permission
  })
  return words.length > 0 ? `lacks ${words.join(', ')}` : null
}

/** What a finding says, with what the credential lacks and nobody needs. */
export const findingText = ({ text, unneeded = [] }: Found): string =>
  unneeded.length === 0 ? text : `${text}; lacks ${unneeded.join(', ')}, which no team here needs`

/** Who or what may start a run, as filters name it. */
export const STARTERS: Record<StartedBy['kind'], string> = {
  person: 'a person',
  token: 'a token',
  service: 'a service',
  mcp: 'an assistant',
  schedule: 'a schedule',
  hook: 'a hook',
  watch: 'a watch',
  chain: 'a chain',
  move: 'a move to another daemon',
  unknown: 'not known',
}

const WAY: Record<Via, string> = { cli: 'command line', page: 'page', api: 'API' }

/** The same of what another program sent, which may be newer or older. */
export const viewedStarter = (by: StartedByView | undefined): string | null =>
  by ? starterText(by as StartedBy) : null

/** Who or what started a run, such as `ada (command line)`. Null when nobody knows, or it is a kind of newer programs. */
export function starterText(by: StartedBy): string | null {
  const hand = 'manual' in by && by.manual ? `, by hand of ${by.manual.by}` : ''
  switch (by.kind) {
    case 'person':
      return `${by.name} (${WAY[by.via]})`
    case 'token':
      return `token ${by.name} of ${by.owner} (${WAY[by.via]})`
    case 'service':
      return `service ${by.identity} (${by.subject})`
    case 'mcp':
      return `${by.name} (${by.client})`
    case 'schedule':
      return `schedule ${by.name}, for ${by.slot}${by.catch_up ? ', catching up' : ''}${hand}`
    case 'hook':
      return `hook ${by.name}, delivery ${by.delivery}${hand}`
    case 'watch':
      return `watch ${by.name}, ${by.files.length === 1 ? by.files[0]!.path : `${by.files.length} files`}${hand}`
    case 'chain':
      return `chain ${by.name}, after run ${by.run_id}${hand}`
    case 'move':
      return `${by.by}, who moved run ${by.run_id}`
    default:
      return null
  }
}

/** The phase of a delivery to an account of a home's settings, which no listener asked for; the account follows. */
export const ACCOUNT_OF_HOME = 'notify.on_fail '

/** What is said of a run, or of one of its phases, when something happens to it. */
export function eventText(
  run: { run_id: string; run_name: string | null; team: string; state: string; started_by: StartedBy | null },
  error: { phase?: string | undefined; message: string } | null,
  phase?: { name: string; state: string } | null,
): string {
  const name = run.run_name ? `${oneLine(run.run_name)} (${run.run_id})` : run.run_id
  const starter = run.started_by && starterText(run.started_by)
  const where = phase ? `, phase ${phase.name} ${phase.state.replace('_', ' ')}` : ''
  const by = starter === null ? '' : `, started by ${oneLine(starter)}`
  const why = error ? `: ${error.phase && !phase ? `phase ${error.phase}: ` : ''}${error.message}` : ''
  return `${run.team}: run ${name} ${run.state.replace('_', ' ')}${where}${by}${why}`
}
