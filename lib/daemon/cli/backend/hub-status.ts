// What `status` finds out about the link of a home to its hub, and `doctor` about the realm: from the database, and by asking
// the hub.

import { SQLiteError } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { openForReading } from '../../../../db/open.ts'
import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { Store } from '../../../run/engine.ts'
import { sizeText } from '../../../size.ts'
import { Whoami } from '../../../wire/calls/auth.ts'
import { GetDaemon } from '../../../wire/calls/daemons.ts'
import type { HubLink } from '../../../wire/calls/process.ts'
import { GetRealm } from '../../../wire/calls/realms.ts'
import { ListRealmTriggers } from '../../../wire/calls/triggers.ts'
import { databaseFile } from '../../home/home.ts'
import { APPROVED, PAUSED } from '../../home/hub-approval.ts'
import { HubClient, UNANSWERED } from '../../link/hub-client.ts'
import { NOTHING_WAITS, type Waiting, waitingIn } from '../../link/outbox/outbox.ts'
import { REFUSED, type Refused } from '../../link/sync-sender.ts'
import { type HubOptions, hubCredentials, hubOf, knownHub } from '../kit/hub-client.ts'
import { clock } from '../terminal/table.ts'
import { healthOf } from './hub-health.ts'
import { inWords, type Trouble, troublesWith, wrongWith } from './trigger-status.ts'

/** `status` reports a hub that does not answer within this time as away. */
const PATIENCE_MS = 3_000
/** Tokens and leases depend on the clocks, so `status` reports a larger difference. */
const CLOCK_MS = 30_000
/** The longest pause between two tries of a step of the link, and what a try takes. */
const TRIED_AGAIN_MS = 60_000

export interface HubStatus {
  url: string
  answers: boolean
  /** Why it does not answer, as this program found it; null while it answers. */
  error: string | null
  /** Whether it accepts the realm token; null without one, or while it does not answer. */
  enrolled: boolean | null
  daemon_id: string | null
  realm: { id: string; slug: string | null } | null
  approved: boolean | null
  /** Whether an operator has paused this daemon, as far as is known. */
  paused: boolean
  /** How the hub sees this daemon, if you may ask. */
  status: string | null
  /** The accounts of the realm (`notify.on_fail`) that no daemon has which is online now, if you may ask. */
  unreached: string[]
  /** Triggers of the realm that are broken, or of which an occasion was refused lately, of the first hundred by name. */
  wrong_triggers: { name: string; text: string }[]
  /** How far the hub’s clock is ahead of this one, in milliseconds; 0 if it is hardly. Null: the hub does not say. */
  clock_ahead_ms: number | null
  /** What this daemon has yet to send to the hub. */
  unsent: Unsent
  /** What it has refused: it is kept, and sent again when the hub's database is another copy. */
  refused: Refused
  /** That the hub is on an older copy of its database, as it says. */
  older_copy: string | null
  /** What else keeps the hub from part of its work, as it says. */
  impaired: string[]
}

interface Unsent {
  changes: number
  lines: number
  /** The size of the changes. */
  bytes: number
  /** When the oldest change was queued, in epoch milliseconds; null when none waits, and where nobody has noted it. */
  oldest_at: number | null
  files: Waiting['files']
}

/** What a daemon that runs says of its link. */
export interface DaemonAtHub {
  /** Whether it was enrolled when it started. */
  enrolled: boolean | null
  connected: boolean | null
  token_replaced: boolean | null
  troubles: HubLink['troubles']
}

interface LinkFacts {
  daemon_id: string | null
  realm_id: string | null
  approved: boolean | null
  paused: boolean
  unsent: Unsent
  refused: Refused
}

const NOTHING_REFUSED: Refused = { changes: 0, runs: {} }

/** What the daemon last stored about its hub. */
async function factsIn(home: string): Promise<LinkFacts> {
  const none = {
    daemon_id: null,
    realm_id: null,
    approved: null,
    paused: false,
    unsent: unsentOf(NOTHING_WAITS),
    refused: NOTHING_REFUSED,
  }
  const file = databaseFile(home)
  if (!existsSync(file)) return none
  try {
    using db = openForReading(file)
    const store = new Store(db)
    const { facts } = store
    const approved = facts.get(APPROVED)
    return {
      daemon_id: facts.get('daemon_id'),
      realm_id: facts.get('realm_id'),
      approved: approved === null ? null : approved === 'yes',
      paused: facts.get(PAUSED) === 'yes',
      unsent: unsentOf(await waitingIn(store)),
      refused: JSON.parse(facts.get(REFUSED) ?? 'null') ?? NOTHING_REFUSED,
    }
  } catch (error) {
    // The database is of another version, or cannot be read. Other commands report that.
    if (error instanceof SQLiteError) return none
    throw error
  }
}

const unsentOf = ({ changes: { count, bytes, oldest_at }, lines, files }: Waiting): Unsent => {
  return { changes: count, lines, bytes, oldest_at, files }
}

/** Null when the home knows no hub. */
export async function hubStatusOf(home: string, options: HubOptions): Promise<HubStatus | null> {
  const url = await knownHub(home, options)
  if (url === null) return null
  const { daemon_id, realm_id, approved, paused, unsent, refused } = await factsIn(home)
  const { answers, error, ahead, older_copy, impaired } = await healthOf(url)
  return {
    url,
    answers,
    error,
    enrolled: await isAccepted(home, url, answers),
    daemon_id,
    realm: realm_id === null ? null : { id: realm_id, slug: null },
    approved,
    paused,
    status: null,
    unreached: [],
    wrong_triggers: [],
    clock_ahead_ms: ahead,
    unsent,
    refused,
    older_copy,
    impaired,
    ...(answers && daemon_id !== null && realm_id !== null && (await asPerson(home, options, daemon_id, realm_id))),
  }
}

/** Whether the hub accepts the realm token of this home; null when there is none, or the hub is away. */
async function isAccepted(home: string, url: string, answers: boolean): Promise<boolean | null> {
  const credential = (await hubCredentials(home)).for(url, 'realm_token')
  if (!credential || !answers) return null
  try {
    await new HubClient(url, credential.token).call(Whoami, {}, { timeout: PATIENCE_MS })
    return true
  } catch (error) {
    return error instanceof CadreError && error.code === 'unauthorized' ? false : null
  }
}

/** What only a person may ask. Without a credential, or where it reaches no such realm, nothing. */
async function asPerson(home: string, options: HubOptions, daemon_id: string, realm_id: string) {
  try {
    const client = await hubOf(home, options)
    const { slug, notify } = await client.call(GetRealm, { realm_id }, { timeout: PATIENCE_MS })
    const [{ status, paused }, wrong_triggers] = await Promise.all([
      client.call(GetDaemon, { daemon_id }, { timeout: PATIENCE_MS }),
      wrongIn(client, realm_id),
    ])
    return { realm: { id: realm_id, slug }, status, paused, wrong_triggers, unreached: notify?.unreached ?? [] }
  } catch (error) {
    if (error instanceof CadreError) return {}
    throw error
  }
}

/** Triggers of the realm. A credential that may not read them sees none. */
async function wrongIn(client: HubClient, realm_id: string): Promise<HubStatus['wrong_triggers']> {
  const asked = client.call(ListRealmTriggers, { realm_id, limit: 100 }, { timeout: PATIENCE_MS })
  const { triggers } = await asked.catch(error => {
    if (error instanceof CadreError) return { triggers: [] }
    throw error
  })
  return triggers.flatMap(wrongWith)
}

/** Triggers of the realm that need somebody. */
export const troublesAtHub = ({ realm, wrong_triggers }: HubStatus): Trouble[] =>
  troublesWith(wrong_triggers, realm?.slug ?? undefined)

/** What needs attention, with what to do. `daemon` is the process that holds the home, if one does. */
export function problemsAtHub(hub: HubStatus, daemon: DaemonAtHub | null): string[] {
  const {
    url,
    answers,
    error,
    enrolled,
    approved,
    paused,
    status,
    clock_ahead_ms: ahead,
    unsent,
    refused,
    older_copy,
    impaired,
  } = hub
  const lost = unsent.changes + unsent.lines
  return [
    !answers && `${error}; runs go on, and the daemon reports them when the hub is back`,
    ...impaired,
    enrolled === false &&
      `the hub refuses the realm token: ${commandLine('enrol', '--hub', url)}${daemon?.enrolled ? ', and restart the daemon' : ''}`,
    approved === false &&
      `the daemon gets no jobs before an operator approves it: ${commandLine('daemons', 'approve', hub.daemon_id ?? '')}`,
    answers && daemon?.enrolled === false && enrolled === null && unenrolled(url),
    enrolled === true && daemon && whyRestart(daemon, 'the daemon'),
    paused &&
      `an operator has paused this daemon: it finishes what it has and takes no more runs; to end it: ${commandLine('daemons', 'unpause', hub.daemon_id ?? '')}`,
    ...troublesOfLink(hub, daemon),
    daemon !== null && status !== null && status !== 'online' && `the hub counts this daemon as ${status}`,
    ahead !== null &&
      Math.abs(ahead) > CLOCK_MS &&
      `the clock of this machine is ${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'behind' : 'ahead of'} that of the hub: let NTP set both, and see by \`date\` which is wrong`,
    hub.unreached.length > 0 &&
      `realm ${hub.realm?.slug} is to tell ${hub.unreached.join(', ')} of what fails, and no daemon that is online has that account: only its webhooks hear of it`,
    ...troublesAtHub(hub).map(inWords),
    older_copy,
    filesText(unsent.files),
    refused.changes > 0 &&
      `the hub has refused ${refused.changes} changes of runs, which stay here; the daemon sends them again if the hub gets another copy of its database: ${refusedText(refused)}`,
    daemon === null &&
      lost > 0 &&
      `the hub lacks ${lost} changes and log lines; \`${commandLine('serve')}\` sends them`,
  ].filter(each => typeof each === 'string')
}

/** Why the link does not do its work. What `status` has found out itself says so already. */
function troublesOfLink(hub: HubStatus, daemon: DaemonAtHub | null): string[] {
  if (!daemon || !hub.answers) return []
  const isKnown = hub.enrolled === false || daemon.token_replaced === true
  // The hub answers again. The link tries each step again within half a minute, and until then it is not in trouble.
  const isOver = ({ code, since }: DaemonAtHub['troubles'][number]) =>
    code === UNANSWERED && daemon.connected !== false && Date.now() - since < TRIED_AGAIN_MS
  const open = daemon.troubles.filter(each => !(isKnown && each.code === 'unauthorized') && !isOver(each))
  const since = new Map<string, number>()
  for (const trouble of open)
    since.set(trouble.error, Math.min(trouble.since, since.get(trouble.error) ?? trouble.since))
  if (since.size === 0 && daemon.connected === false && isUsable(hub, daemon)) {
    return ['the daemon has no link to the hub at present; its log says why']
  }
  return [...since].map(([error, at]) => `the daemon cannot do its work with the hub since ${clock(at)}: ${error}`)
}

/** Files that could not be sent, and why: the error says where to, and what allows the address if it is not allowed. */
function filesText({ count, bytes, oldest_at, error }: Waiting['files']): string | null {
  if (error === null) return null
  const what = count === 1 ? '1 file of a run' : `${count} files of runs`
  const age = oldest_at === null ? '' : `, the oldest for ${ageText(oldest_at)}`
  return `${what} (${sizeText(bytes)}) could not be sent to the store of the hub yet${age}: ${error}`
}

/** How long something has waited. */
export const ageText = (since: number): string => formatDuration(Math.max(0, Date.now() - since))

const MOST_NAMED = 3

function refusedText({ runs }: Refused): string {
  const all = Object.entries(runs)
  const named = all.slice(0, MOST_NAMED).map(([id, code]) => `${id} (${code})`)
  return named.join(', ') + (all.length > MOST_NAMED ? ` and ${all.length - MOST_NAMED} more` : '')
}

/**
 * Why a daemon that runs does not take the enrolment of its home before it is started again, or null when it does. `who`
 * begins the sentence.
 */
export function whyRestart({ enrolled, token_replaced }: DaemonAtHub, who: string): string | null {
  if (enrolled === false) return `${who} was started before it was enrolled, so it has no link to the hub: restart it`
  return token_replaced ? `${who} still uses the realm token with which it was started: restart it` : null
}

/** How the hub is to this home, in words. What the daemon says of its link is older than what the hub has just said. */
export function linkText(hub: HubStatus, daemon: DaemonAtHub | null): string {
  if (!hub.answers) return 'it does not answer'
  if (hub.enrolled === false) return 'it refuses the realm token'
  if (daemon?.connected == null || !isUsable(hub, daemon)) return 'it answers'
  return daemon.connected ? LINKED : 'no link'
}

export const LINKED = 'linked'

/** Whether the daemon can have a link to this hub, as far as is known. */
const isUsable = ({ answers, enrolled }: HubStatus, daemon: DaemonAtHub | null): boolean =>
  answers && enrolled !== false && daemon?.token_replaced !== true

function unenrolled(url: string): string {
  const enrol = `${commandLine('realm-token', 'REALM')} | ${commandLine('enrol', '--hub', url)}`
  return `the daemon is not enrolled, so it takes no jobs of the hub and reports no runs: ${enrol}, and start it again`
}
