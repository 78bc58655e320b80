// The looks at one watched folder: what differs from what was seen becomes occasions, each once, because what was seen is
// written in the transaction of its firing.

import { parseDuration } from '../../duration.ts'
import { isLasting } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { Changed, pausedText } from '../../firing/changes.ts'
import type { Halt } from '../../firing/halt.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import {
  type Difference,
  differenceOf,
  firingOf,
  groupsOf,
  isStorm,
  MOST_TOGETHER,
  occasionOf,
  type Seen,
  seenAfter,
  stateOf,
  variablesOf,
} from '../../firing/watch-rows.ts'
import { FolderListener } from '../../triggers/watch/listener.ts'
import { digestOf, IN_A_ROW, look, othersTurn, rootOf, type Stat, scan } from '../../triggers/watch/scan.ts'
import { Settling } from '../../triggers/watch/settling.ts'
import type { WatchSpec } from '../../triggers/watch/spec.ts'

import { isOfCopy } from '../home/copied-triggers.ts'
import type { Home } from './at-home.ts'
import { fire } from './fire.ts'
import type { GetsOn } from './lanes.ts'
import { noteProblem } from './problem.ts'

/** How many firings are written at once: they share commits, because each commit waits for the disk. */
const TOGETHER = 20
/** A scan for an event comes this many times later than the last one took, so that a large folder is not always scanned. */
const REST_AFTER_SCAN = 4

type Watch = Trigger<WatchSpec>

export class FolderWatch {
  readonly #home: Home
  readonly #clock: () => number
  readonly #listener: FolderListener
  #isClosed = false
  /** The revision to which everything below belongs. */
  #revision = 0
  #seen: Map<string, Seen> | null = null
  #settling = new Settling(0)
  #isDue = true
  #notBefore = 0
  #pollAt = 0
  #batchAt: number | null = null
  #saysDeaf = true

  constructor(home: Home, clock: () => number, wake: () => void) {
    this.#home = home
    this.#clock = clock
    const heard = () => {
      if (this.#isDue) return
      this.#isDue = true
      wake()
    }
    this.#listener = new FolderListener(heard, error => this.#deaf(error))
  }

  close(): void {
    this.#isClosed = true
    this.#listener.close()
  }

  /** Whether there is anything to look at, as far as is known without the trigger. */
  get isDue(): boolean {
    const now = this.#clock()
    const restsAt = this.#settling.nextAt
    return this.#scanIsDue(now) || (restsAt !== null && now >= restsAt)
  }

  #scanIsDue(now: number): boolean {
    return now >= this.#pollAt || (this.#isDue && now >= this.#notBefore)
  }

  /** `trigger` is enabled, or was a moment ago. */
  async look(trigger: Watch, getsOn: GetsOn): Promise<void> {
    try {
      if (trigger.enabled && !isOfCopy(trigger.paused)) await this.#look(trigger, getsOn)
    } catch (error) {
      // What is in memory may be ahead of what was written.
      this.#seen = null
      if (!this.#isClosed) throw error
    }
  }

  async #look(trigger: Watch, getsOn: GetsOn): Promise<void> {
    const { own } = trigger.spec
    this.#renew(trigger)
    const began = this.#clock()
    const isFull = this.#scanIsDue(began)
    let looked: { root: string; files: ReadonlyMap<string, Stat | null> }
    try {
      looked = isFull ? await this.#scan(own, getsOn) : await this.#lookAgain(own, getsOn)
    } catch (error) {
      if (!isLasting(error)) throw error
      this.#pollAt = this.#clock() + parseDuration(own.poll)!
      await this.#noteProblem(trigger, error.message)
      return
    }
    const seen = this.#seen ?? (await this.#home.tables.watches.seen(trigger.id))
    this.#seen = seen
    const times = { began, ended: this.#clock() }
    if (isFull) this.#plan(own, times)
    const resting = await this.#resting(looked.files, seen, isFull, times)
    const differing = await this.#differing(own, resting, seen, getsOn)
    if (this.#isClosed) return
    await this.#mend(trigger, seen)
    await this.#settle(trigger, looked.root, differing, getsOn)
  }

  #renew({ revision, spec }: Watch): void {
    if (this.#revision === revision) return
    this.#revision = revision
    this.#seen = null
    this.#settling = new Settling(parseDuration(spec.own.settle)!)
    this.#batchAt = null
    this.#pollAt = 0
    this.#listener.close()
  }

  async #scan(own: WatchSpec, getsOn: GetsOn) {
    this.#isDue = false
    const { root, files, folders } = await scan(own, { getsOn })
    // What happened in a new folder before it was listened to is found by one scan more.
    if (!this.#isClosed && this.#listener.follow(root, folders)) this.#isDue = true
    return { root, files }
  }

  async #lookAgain(own: WatchSpec, getsOn: GetsOn) {
    return { root: await rootOf(own), files: await look(own, this.#settling.paths, getsOn) }
  }

  #plan({ poll }: WatchSpec, { began, ended }: { began: number; ended: number }): void {
    this.#notBefore = ended + REST_AFTER_SCAN * (ended - began)
    this.#pollAt = ended + parseDuration(poll)!
  }

  /** Files that differ from what was seen, and have stayed the same for a while. Null: they are gone. */
  async #resting(
    files: ReadonlyMap<string, Stat | null>,
    seen: ReadonlyMap<string, Seen>,
    isFull: boolean,
    times: { began: number; ended: number },
  ): Promise<[string, Stat | null][]> {
    const resting: [string, Stat | null][] = []
    let looked = 0
    for (const path of isFull ? allOf(files, seen, this.#settling.paths) : files.keys()) {
      const state = files.get(path) ?? null
      if (this.#settling.rests(path, state, stateOf(seen.get(path)), times)) resting.push([path, state])
      if (++looked % IN_A_ROW === 0) await othersTurn()
    }
    return resting
  }

  async #differing(
    own: WatchSpec,
    resting: readonly [string, Stat | null][],
    seen: ReadonlyMap<string, Seen>,
    getsOn: GetsOn,
  ): Promise<Difference[]> {
    const found: Difference[] = []
    for (const [path, identity] of resting) {
      const isHashed = own.identity === 'sha256' && identity !== null
      const sha256 = isHashed ? await digestOf(own, path, identity, getsOn) : null
      // It has changed again, which the next look sees.
      if (isHashed && sha256 === null) continue
      found.push(differenceOf(path, { identity, sha256 }, seen.get(path)))
    }
    return found
  }

  /** Decides about everything that rests. */
  async #settle(trigger: Watch, root: string, differing: readonly Difference[], getsOn: GetsOn): Promise<void> {
    const { own, overlap, at_most } = trigger.spec
    const counts = ({ what }: Difference) => what !== null && own.on.includes(what)
    await this.#passOver(
      trigger,
      differing.filter(each => !counts(each)),
    )
    const all = differing.filter(counts).sort((one, other) => (one.path < other.path ? -1 : 1))
    if (all.length === 0 || !this.#batchIsOver(own)) return
    const groups = groupsOf(all, own.batch === null ? 1 : MOST_TOGETHER)
    const together = overlap === 'allow' && at_most === null ? TOGETHER : 1
    for (const some of groupsOf(groups, together)) {
      if (this.#isClosed) return
      getsOn()
      await Promise.all(some.map(group => this.#report(trigger, root, group)))
    }
  }

  /** Whether those that came before have waited for long enough for others. */
  #batchIsOver({ batch }: WatchSpec): boolean {
    if (batch === null) return true
    this.#batchAt ??= this.#clock() + parseDuration(batch)!
    if (this.#clock() < this.#batchAt) return false
    this.#batchAt = null
    return true
  }

  /** Takes in what is no occasion. */
  async #passOver(trigger: Watch, those: readonly Difference[]): Promise<void> {
    const { daemon, tables } = this.#home
    const now = tables.now()
    for (const some of groupsOf(those, MOST_TOGETHER)) {
      await daemon.engine.commit(() => {
        this.#mustBeAt(trigger)
        for (const each of some) tables.watches.put(trigger.id, each.path, seenAfter(each, now))
      })
      this.#remember(some, now, false)
    }
  }

  async #report(trigger: Watch, root: string, group: readonly Difference[]): Promise<void> {
    const { daemon, tables } = this.#home
    const now = tables.now()
    const put = () => {
      for (const each of group) tables.watches.put(trigger.id, each.path, seenAfter(each, now, true))
    }
    const occasion = this.#freeName(trigger.id, occasionOf(root, group))
    const feeding = group.find(({ reported }) => isStorm(reported, now, 1))
    if (feeding) await this.#noteProblem(trigger, stormText(feeding.path))
    const halt = this.#haltOf(trigger)
    failpoint()
    if (halt) {
      const firing: Firing = { ...firingOf(trigger, root, group, now), occasion, ...halt }
      await daemon.engine.commit(() => {
        this.#mustBeAt(trigger)
        tables.firings.insert(firing)
        put()
      })
    } else {
      const variables = variablesOf(root, group)
      const about = { occasion, at: now, late_ms: 0, manual: null, variables }
      await fire(daemon, tables, trigger, about, { recorded: put })
    }
    this.#remember(group, now, true)
  }

  /** What keeps occasions from starting anything, whatever they are. */
  #haltOf({ id }: Watch): Halt | null {
    const now = this.#home.tables.triggers.get(id)
    if (now?.paused) return { state: 'skipped', reason: 'paused', detail: pausedText(now) }
    if (now?.problem?.reason === 'internal') return { state: 'refused', reason: 'internal', detail: now.problem.text }
    return null
  }

  /** A file that becomes again what it was once is another occasion. */
  #freeName(triggerId: string, name: string): string {
    const newest = this.#home.tables.firings.newestOf(triggerId, name)
    return newest === null ? name : `${name}~${Number(newest.occasion.slice(name.length + 1) || 1) + 1}`
  }

  #remember(those: readonly Difference[], now: number, isReport: boolean): void {
    for (const each of those) {
      this.#seen?.set(each.path, seenAfter(each, now, isReport))
      this.#settling.forget(each.path)
    }
  }

  /** The folder can be seen, and no file of it is reported all the time. */
  async #mend({ id, problem }: Watch, seen: ReadonlyMap<string, Seen>): Promise<void> {
    if (problem?.reason !== 'internal') return
    const { daemon, tables } = this.#home
    for (const { reported } of seen.values()) if (isStorm(reported, tables.now())) return
    await daemon.engine.commit(() => tables.triggers.setProblem(id, null))
  }

  async #noteProblem(trigger: Watch, text: string): Promise<void> {
    const { daemon, tables } = this.#home
    await daemon.engine.commit(() => {
      this.#mustBeAt(trigger)
      noteProblem(daemon, tables.triggers, trigger, text, tables.now())
    })
  }

  #mustBeAt({ id, revision }: Watch): void {
    if (this.#home.tables.triggers.get(id)?.revision !== revision) throw new Changed('the trigger has changed')
  }

  #deaf(error: unknown): void {
    if (!this.#saysDeaf || this.#isClosed) return
    this.#saysDeaf = false
    this.#home.daemon.log.warn('a folder tells of no changes, and is looked at from time to time', { error })
  }
}

/** What is there, and what was: each path once. */
function* allOf(files: ReadonlyMap<string, unknown>, seen: ReadonlyMap<string, unknown>, waiting: readonly string[]) {
  yield* files.keys()
  for (const path of seen.keys()) if (!files.has(path)) yield path
  for (const path of waiting) if (!files.has(path) && !seen.has(path)) yield path
}

const stormText = (path: string): string =>
  `${path} was reported more than 10 times within an hour: does the team write into the folder that it watches?`
