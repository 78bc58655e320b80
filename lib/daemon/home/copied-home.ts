// Where a home is, and whether it is where it was. Its database remembers which file it is, by inode and birth time, and
// a mark: a random value in a file beside it, which each start renews. A copy, a home that was put back and one that was
// moved to another disk differ in one of these. A reboot, another name of the folder and a container made anew on its
// volume change none. Device number and machine id are only shown to people, except where the birth time is unknown.

import type { Database } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { CadreError } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { type FileIdentity, identityFrom, identityOf, isSameFile } from '../../files/file-identity.ts'
import { HOME_FACTS, Store } from '../../run/engine.ts'
import { liftPauses, pauseTriggers } from './copied-triggers.ts'
import { databaseFile } from './home.ts'

/** Where a database was, for a person. */
export interface Whereabouts {
  folder: string
  host: string
  device: string | null
  machine: string | null
}

/** A mark: its value, and which file has it. */
type Mark = FileIdentity & { value: string }

/**
 * The fact `place`. There are two marks, because database and file are not written at once: the one that the last start
 * found, and the one that it wrote.
 */
interface Place extends Whereabouts {
  file: FileIdentity
  inContainer: boolean
  marks: Mark[]
}

/** The fact `copied`: how this home was found to be a copy, or to have been moved. */
export interface Copied {
  at: number
  /** What differed. */
  why: string
  from: Whereabouts
}

const PLACE = 'place'
const COPIED = 'copied'
/** The fact that a restore leaves: when its backup was made, and of which home. */
export const RESTORED = 'restored'
/** By how much the count of starts grows with a move: more than the home at the former place will be started. */
const MOVE_STARTS = 1_000_000

const markFile = (home: string): string => join(home, 'place')

/**
 * Compares where the home is with where it was, and records the new place and mark. If they differ, what has not ended
 * is held in the same transaction. Returns what was found by this start, or null.
 */
export function settlePlace(db: Database, home: string, now: number): Copied | null {
  const store = new Store(db)
  const { facts, copies } = store
  const found = findCopy(facts, home, now)
  const mark = readMark(home)
  const next = draftMark(home)
  // Only one of the two is written when there was no mark before. Nothing is lost if the process ends in between.
  if (!mark) next.put()
  const place: Place = { ...placeOf(home), marks: mark ? [mark, next.mark] : [next.mark] }
  db.transaction(() => {
    facts.set(PLACE, JSON.stringify(place))
    countStart(facts)
    if (!found) return
    facts.set(COPIED, JSON.stringify(found))
    facts.drop(RESTORED)
    copies.found(now)
    pauseTriggers(db, now)
    leaveHub(store)
  }).immediate()
  failpoint()
  if (mark) next.put()
  failpoint()
  return found
}

/** Makes this home one that no hub knows. It enrols as a daemon of its own. */
function leaveHub({ facts, copies }: Store): void {
  const id = facts.get('daemon_id')
  // A copy that was never at work as a daemon of its own is still one of the home that it was made from.
  if (id !== null && (copies.reportsAny || facts.get(HOME_FACTS.former) === null)) facts.set(HOME_FACTS.former, id)
  copies.reportNothing()
  const hubFacts = ['daemon_id', 'epoch', 'sync', 'sync_again', 'approved', HOME_FACTS.movedAway, HOME_FACTS.left]
  for (const fact of hubFacts) facts.drop(fact)
}

/**
 * Makes the home the daemon again that it was at its former place, or that the hub says goes on elsewhere. The hub then
 * refuses the other one. Throws `invalid_state` where there is nothing to say, and `conflict` where it comes too late.
 * Called in a transaction.
 */
export function takePlace({ db, facts, copies }: Store): void {
  const { former, left, movedAway, starts } = HOME_FACTS
  const was = facts.get(former)
  const lifted = liftPauses(db)
  if (was !== null) {
    if (copies.reportsAny) {
      throw new CadreError(
        'conflict',
        'this home has reported runs as a daemon of its own since it was copied, so it stays that daemon',
      )
    }
    const interim = facts.get('daemon_id')
    if (interim !== null) facts.set(left, interim)
    facts.set('daemon_id', was)
    facts.drop(former)
    copies.reportAgain()
    for (const fact of ['epoch', 'sync', 'approved']) facts.drop(fact)
    // All of its runs are sent to the hub, as after the loss of an acknowledged change.
    facts.set('sync_again', JSON.stringify({ root: '', key: '' }))
  } else if (facts.get(movedAway) === null && lifted === 0) {
    throw new CadreError(
      'invalid_state',
      'no hub knows this home at another place, so there is nothing to say; `status` shows what waits here',
    )
  }
  facts.drop(movedAway)
  facts.set(starts, String(Number(facts.get(starts) ?? 0) + MOVE_STARTS))
}

function countStart(facts: Store['facts']): void {
  facts.set(HOME_FACTS.starts, String(Number(facts.get(HOME_FACTS.starts) ?? 0) + 1))
  facts.set(HOME_FACTS.start, crypto.randomUUID())
}

/** How a home was found to be a copy, and how many of its top runs wait for a person. Null for a home that never was. */
export function copiedOf({ facts, copies }: Pick<Store, 'facts' | 'copies'>): (Copied & { runs: number }) | null {
  const copied = facts.get(COPIED)
  return copied === null ? null : { ...JSON.parse(copied), runs: copies.held().length }
}

/** What the next start will find. Nothing is written. */
export function copyToBe({ facts }: Pick<Store, 'facts'>, home: string): Copied | null {
  return findCopy(facts, home, Date.now())
}

/** A sentence for people. */
export function copiedText({ why, from }: Copied): string {
  const known = { device: from.device, machine: from.machine }
  const numbers = Object.entries(known).flatMap(([name, value]) => (value === null ? [] : `${name} ${value}`))
  const more = numbers.length === 0 ? '' : ` (${numbers.join(', ')})`
  return `this home was copied or moved: ${why}; it was ${from.folder} on ${from.host}${more}`
}

function findCopy(facts: Store['facts'], home: string, at: number): Copied | null {
  const [recorded, restored] = [facts.get(PLACE), facts.get(RESTORED)]
  if (restored !== null) {
    const { made_at, folder, host }: { made_at: number; folder: string; host: string } = JSON.parse(restored)
    const { device = null, machine = null }: Partial<Place> = recorded === null ? {} : JSON.parse(recorded)
    const why = `it was restored from the backup of ${new Date(made_at).toISOString()}`
    return { at, why, from: { folder, host, device, machine } }
  }
  // A new home, or one of a version that did not record its place.
  if (recorded === null) return null
  const was: Place = JSON.parse(recorded)
  const why = difference(was, placeOf(home), readMark(home), home)
  const { folder, host, device, machine } = was
  return why === null ? null : { at, why, from: { folder, host, device, machine } }
}

function difference(was: Place, is: Omit<Place, 'marks'>, mark: Mark | null, home: string): string | null {
  const name = databaseFile(home)
  if (!isSameFile(was.file, is.file)) return `${name} is another file than before`
  const knowsBirth = was.file.birth !== null && is.file.birth !== null
  const isElsewhere = was.machine !== null && is.machine !== null && was.machine !== is.machine
  if (!knowsBirth && isElsewhere && !was.inContainer && !is.inContainer) return `${name} is on another machine`
  if (mark === null) return `${markFile(home)} is missing`
  if (was.marks.some(each => each.value === mark.value && isSameFile(each, mark))) return null
  return `${name} does not know what stands in ${markFile(home)}, so one of the two was put back from an earlier copy`
}

function placeOf(home: string): Omit<Place, 'marks'> {
  const stat = statSync(databaseFile(home), { bigint: true })
  return {
    ...{ folder: home, host: hostname(), device: String(stat.dev), machine: machineId() },
    ...{ file: identityFrom(stat), inContainer: isContainer() },
  }
}

/** Writes the next mark beside the present one, which a rename then replaces: its inode is known before. */
function draftMark(home: string): { mark: Mark; put(): void } {
  const draft = `${markFile(home)}.next`
  const value = crypto.randomUUID()
  const handle = openSync(draft, 'w', 0o600)
  try {
    writeSync(handle, `${value}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  return { mark: { value, ...identityOf(draft) }, put: () => renameSync(draft, markFile(home)) }
}

function readMark(home: string): Mark | null {
  try {
    return { value: readFileSync(markFile(home), 'utf8').trim(), ...identityOf(markFile(home)) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function machineId(): string | null {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim() || null
  } catch {
    return null
  }
}

/** A container may get another machine id each time that it is made. */
const isContainer = (): boolean =>
  ['/.dockerenv', '/run/.containerenv'].some(file => existsSync(file)) ||
  process.env.container !== undefined ||
  process.env.KUBERNETES_SERVICE_HOST !== undefined
