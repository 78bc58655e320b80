// What `status` finds out: about the process that holds the home, from that process; about runs, from whoever knows them;
// and about the hub (backend/hub-status.ts).

import { SQLiteError } from 'bun:sqlite'
import { existsSync, statfsSync, statSync } from 'node:fs'
import { openForReading } from '../../../../db/open.ts'
import { CadreError } from '../../../error.ts'
import { isObject } from '../../../json.ts'
import { commandLine } from '../../../program/called-as.ts'
import { version } from '../../../program/version.ts'
import { HOME_FACTS, Store } from '../../../run/engine.ts'
import { sizeText } from '../../../size.ts'
import { GetHubLink, type HubLink } from '../../../wire/calls/process.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { ListRuns } from '../../../wire/calls/runs.ts'
import { type Copied, copiedOf, copiedText, copyToBe } from '../../home/copied-home.ts'
import { databaseFile, readToken } from '../../home/home.ts'
import { holderOf } from '../../home/lock.ts'
import { lostDeliveries, lostTells, problemsOfAccounts } from '../backend/account-status.ts'
import { addressOf, createClient, stuck } from '../backend/home-client.ts'
import { type HubStatus, hubStatusOf, problemsAtHub } from '../backend/hub-status.ts'
import { askAboutRuns } from '../backend/run-answers.ts'
import { problemsOfTriggers, type TriggersStatus, triggersIn } from '../backend/trigger-status.ts'
import { type HubOptions, readSession } from '../kit/hub-client.ts'

/** `status` reports a daemon that does not answer within this time as stuck. */
const PATIENCE_MS = 3_000
/** With less free space, runs may fail. */
const LOW_BYTES = 512 * 1024 ** 2

export interface HomeStatus {
  home: string
  version: string
  /** The process that holds the home; null when none does. */
  daemon: Serving | null
  /** Top runs that have not ended, and reviews that wait for somebody; null when the holder of the home does not say. */
  runs: Runs | null
  /** What starts runs by itself; null when the holder of the home does not say. */
  triggers: TriggersStatus | null
  /** How the home was found to be a copy, and how many of its top runs wait for a person; null for one that never was. */
  copied: (Copied & { runs: number }) | null
  /** Null when the home knows no hub. */
  hub: HubStatus | null
  signed_in: { hub: string } | null
  disk: { free: number; total: number; database: number }
  /** What needs somebody's attention, with what to do. */
  problems: string[]
}

interface Runs {
  queued: number
  running: number
  awaiting_input: number
  interrupted: number
  reviews: number
}

export interface Serving {
  pid: number
  command: string
  address: string | null
  /** Whether it answers; false also before it serves. */
  answers: boolean
  version: string | null
  slots: { used: number; free: number } | null
  /** Why nothing new begins. */
  stalled: string | null
  /** Whether it was enrolled at a hub when it started. */
  enrolled: boolean | null
  /** Whether the hub has answered it recently; null also where it is not enrolled. */
  connected: boolean | null
  /** Whether another realm token was stored since it started; null where it is not enrolled. */
  token_replaced: boolean | null
  /** What keeps the link from its work at present, as the daemon says it. */
  troubles: HubLink['troubles']
}

export async function homeStatusOf(home: string, options: HubOptions): Promise<HomeStatus> {
  const daemon = await serving(home)
  const runs = daemon?.answers === false ? null : await runsIn(home)
  const triggers = daemon?.answers === false ? null : await triggersIn(home)
  const hub = await hubStatusOf(home, options)
  const session = readSession(home)
  const disk = diskOf(home)
  const copy = copyStatus(home, daemon !== null)
  const signed_in = session && { hub: session.hub }
  const found = { home, version, daemon, runs, triggers, copied: copy.copied, hub, signed_in, disk }
  const problems = [
    ...problemsHere(found, copy.next !== null),
    ...problemsOf(copy),
    ...(await problemsOfAccounts(home)),
    ...lostTells(home),
    ...lostDeliveries(home),
    ...(triggers ? problemsOfTriggers(triggers, daemon?.command === 'serve') : []),
    ...(hub ? problemsAtHub(hub, daemon) : []),
  ]
  return { ...found, problems }
}

/** A process that serves the home, and does not come to answer. */
export const isStuck = ({ address, answers }: Serving): boolean => address !== null && !answers

/** What is known of a process that has not answered. */
const UNANSWERED = {
  answers: false,
  version: null,
  slots: null,
  stalled: null,
  enrolled: null,
  connected: null,
  token_replaced: null,
  troubles: [],
}

/** What the process that holds the home says of itself; null when none does. */
export async function serving(home: string): Promise<Serving | null> {
  const holder = holderOf(home)
  if (!holder) return null
  const { pid, command } = holder
  const unknown = { pid, command, address: holder.address, ...UNANSWERED }
  const address = holder.address === null ? null : await addressOf(home).catch(() => null)
  if (address === null) return unknown
  try {
    const [health, metrics] = await Promise.all([read(home, `${address}/health`), read(home, `${address}/metrics`)])
    const reply: unknown = JSON.parse(health)
    const { version, slots, free, stalled } = isObject(reply) && isObject(reply.data) ? reply.data : {}
    const connected = flagIn(metrics, 'cadre_hub_connected')
    return {
      ...unknown,
      address,
      answers: true,
      version: typeof version === 'string' ? version : null,
      slots: typeof slots === 'number' && typeof free === 'number' ? { used: slots, free } : null,
      stalled: typeof stalled === 'string' ? stalled : null,
      enrolled: connected !== null,
      connected,
      token_replaced: flagIn(metrics, 'cadre_hub_token_replaced'),
      troubles: connected === null ? [] : await troublesOf(home, address),
    }
  } catch (error) {
    const isSilent = error instanceof DOMException && error.name === 'TimeoutError'
    return { ...unknown, address: isSilent ? address : null }
  }
}

/** Null where the daemon does not say. */
function flagIn(metrics: string, name: string): boolean | null {
  const found = new RegExp(`^${name} ([01])$`, 'm').exec(metrics)?.[1]
  return found === undefined ? null : found === '1'
}

async function read(home: string, url: string): Promise<string> {
  const headers = { authorization: `Bearer ${readToken(home)}` }
  return (await fetch(url, { headers, signal: AbortSignal.timeout(PATIENCE_MS) })).text()
}

/** None where a daemon of an older version does not say. */
async function troublesOf(home: string, address: string): Promise<HubLink['troubles']> {
  const asked = createClient(home, address).call(GetHubLink, {})
  const { troubles } = await asked.catch(error => {
    if (error instanceof CadreError) return { troubles: [] }
    throw error
  })
  return troubles
}

async function runsIn(home: string): Promise<Runs | null> {
  const none = { queued: 0, running: 0, awaiting_input: 0, interrupted: 0, reviews: 0 }
  if (!existsSync(databaseFile(home))) return none
  const found = askAboutRuns(home, async all => {
    const inState = async (state: string) => (await all.call(ListRuns, { state, root_only: true, limit: 1 })).total
    return {
      queued: await inState('queued'),
      running: await inState('running'),
      awaiting_input: await inState('awaiting_input'),
      interrupted: await inState('interrupted'),
      reviews: (await all.call(ListReviews, { state: 'pending', limit: 1 })).total,
    }
  })
  return found.catch(error => {
    if (error instanceof SQLiteError || (error instanceof CadreError && error.code === 'unavailable')) return null
    throw error
  })
}

interface CopyStatus {
  copied: HomeStatus['copied']
  /** What the next start will find. */
  next: Copied | null
  /** What the hub said when it refused this daemon, because it goes on elsewhere. */
  movedAway: string | null
}

function copyStatus(home: string, isHeld: boolean): CopyStatus {
  const none = { copied: null, next: null, movedAway: null }
  if (!existsSync(databaseFile(home))) return none
  try {
    using db = openForReading(databaseFile(home))
    const store = new Store(db)
    const movedAway = store.facts.get(HOME_FACTS.movedAway)
    return { copied: copiedOf(store), next: isHeld ? null : copyToBe(store, home), movedAway }
  } catch (error) {
    // Another part of the report says that the database cannot be read, or is of an older version.
    if (error instanceof SQLiteError || (error instanceof CadreError && error.code === 'unavailable')) return none
    throw error
  }
}

function problemsOf({ movedAway, ...copy }: CopyStatus): string[] {
  return [...copyProblems(copy), ...(movedAway === null ? [] : [movedAway])]
}

function copyProblems({ copied, next }: Omit<CopyStatus, 'movedAway'>): string[] {
  if (next) {
    const until = `until you \`${commandLine('resume', '<run>')}\` or \`${commandLine('cancel', '<run>')}\` each`
    return [`the home is not where it was: ${copiedText(next)}; the next start will hold its unfinished runs ${until}`]
  }
  if (!copied || copied.runs === 0) return []
  const [what, them] = copied.runs === 1 ? ['1 run was', 'it'] : [`${copied.runs} runs were`, 'them']
  const ways = `look at each (${commandLine('runs', '--state', 'interrupted')}), then \`${commandLine('resume', '<run>')}\` or \`${commandLine('cancel', '<run>')}\``
  return [`${copiedText(copied)}; ${what} unfinished, and the original home may have continued ${them}: ${ways}`]
}

function diskOf(home: string): HomeStatus['disk'] {
  const { bavail, blocks, bsize } = statfsSync(existsSync(home) ? home : '/')
  const file = databaseFile(home)
  return { free: bavail * bsize, total: blocks * bsize, database: existsSync(file) ? statSync(file).size : 0 }
}

function problemsHere(
  { daemon, runs, copied, disk, home }: Omit<HomeStatus, 'problems'>,
  willBeCopy: boolean,
): string[] {
  // `copyProblems` reports the runs that wait because the home is a copy.
  const left = Math.max(0, (runs?.interrupted ?? 0) - (copied?.runs ?? 0))
  const interrupted = left === 1 ? '1 run was interrupted' : `${left} runs were interrupted`
  return [
    daemon?.address === null && `process ${daemon.pid} (${daemon.command}) holds the home and does not serve`,
    daemon && isStuck(daemon) && stuck(home, daemon.address!, PATIENCE_MS).message,
    daemon?.version &&
      daemon.version !== version &&
      `the daemon is of version ${daemon.version}, this program of ${version}: restart the daemon`,
    daemon?.stalled && `nothing new begins: ${daemon.stalled}`,
    left > 0 && !willBeCopy && `${interrupted}; to continue: ${commandLine('serve')}`,
    disk.free < LOW_BYTES && `the disk of ${home} has ${sizeText(disk.free)} left`,
  ].filter(each => typeof each === 'string')
}
