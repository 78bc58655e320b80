// What this process knows of the older copies of the database that it was started on: what is in doubt because of them,
// which daemons have to report, and how a copy is recorded and trusted again. What daemons report is true.

import { eq, max } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { isUuid } from '../core/bodies.ts'
import { timeOf } from '../core/hub-clock.ts'
import type { JobRow } from '../core/job-rows.ts'
import type { Notifier } from '../core/notifier.ts'
import { awaitedFor, type Copy, type CopyKind, concernsRealm, isAwaited, readCopies } from './copies.ts'
import { type Discovery, holdJobsOfCopy } from './hold-jobs.ts'
import { releaseJobs } from './release-jobs.ts'

/** Counts go on so far above those of a copy that what was lost cannot have been higher. */
export const GAP = 1_000_000_000
/** The topic by which hubs notify each other that something about older copies has changed. */
const COPIES_TOPIC = 'copies'
/** How many daemons with unknown tokens are named. Anybody may claim to be one. */
const MOST_UNKNOWN = 100

type DaemonRow = Tables['daemons']['$inferSelect']

export interface LineageParts {
  store: Store
  log: Log
  now: () => number
  lived: () => number
  notifier: Notifier
  /** The id of this hub process. */
  process: string
  /** The keys that it holds, as `hubProcesses` lists them. */
  keys: () => string
}

export class OlderCopies {
  readonly #parts: LineageParts
  #copies: Copy[] = []
  #releasing: Promise<void> | null = null
  readonly #unknownDaemons = new Set<string>()
  /** A daemon that has seen a lower count may have seen commits that were lost. */
  safeCount = 0
  /** When this process last looked for jobs that can be released, in lived time. */
  releasedAt = 0

  constructor(parts: LineageParts) {
    this.#parts = parts
  }

  async open(): Promise<void> {
    const { notifier } = this.#parts
    notifier.on(COPIES_TOPIC, () => void this.read().catch(error => this.warn(error)))
    await this.read()
  }

  async read(): Promise<void> {
    const { store } = this.#parts
    if (!this.isOlderCopy) this.#unknownDaemons.clear()
    this.#copies = await readCopies(store, store.db)
    this.safeCount = this.#copies.reduce((most, { raised }) => Math.max(most, raised), 0)
  }

  /** The copies that are not trusted yet. */
  get untrusted(): readonly Copy[] {
    return this.#copies.filter(({ ended_at }) => ended_at === null)
  }

  get isOlderCopy(): boolean {
    return this.#copies.some(({ ended_at }) => ended_at === null)
  }

  doubtAt(realmId: string, at: number): 'unclear' | 'lost' | null {
    const before = this.#copies.filter(
      copy => concernsRealm(copy, realmId) && copy.lost !== false && at <= this.#foundAt(copy),
    )
    if (before.length === 0) return null
    return before.some(({ lost }) => lost) ? 'lost' : 'unclear'
  }

  /** When the copy was found. The clock may have been ahead then, so it was not later than lived time says. */
  #foundAt({ found_at, found_lived }: Copy): number {
    return Math.min(found_at, timeOf(this.#parts, found_lived) ?? found_at)
  }

  awaitsDaemon(daemonId: string): boolean {
    return this.untrusted.some(({ confirmations }) => {
      const known = confirmations.get(daemonId)
      return known !== undefined && isAwaited(known)
    })
  }

  awaitedDaemons(job: Pick<JobRow, 'copy_id' | 'realm_id' | 'daemon_id' | 'needs'>): string[] {
    const copy = this.untrusted.find(({ id }) => id === job.copy_id)
    return copy ? awaitedFor(copy, job).map(({ name }) => name) : []
  }

  notice(): { older_copy?: string } {
    if (!this.isOlderCopy) return {}
    const asked = this.untrusted.flatMap(({ confirmations }) =>
      [...confirmations.values()].filter(({ kind }) => kind === 'daemon'),
    )
    const silent = new Set(asked.filter(isAwaited).map(({ id }) => id)).size
    const all = new Set(asked.map(({ id }) => id)).size
    const who =
      silent === 0
        ? 'no daemon has to report any more'
        : `${silent} of ${all} daemons ${silent === 1 ? 'has' : 'have'} not reported`
    const isKnown = this.untrusted.some(({ lost }) => lost)
    const what = isKnown
      ? 'the hub is on an older copy of its database and holds what waited in it'
      : 'another server goes on with the database, and the hub holds what waited in it until it is shown that nothing was lost'
    return { older_copy: `${what}; ${who} (\`cadre hub reconcile\` shows more)` }
  }

  get unknownDaemons(): readonly string[] {
    return [...this.#unknownDaemons]
  }

  /** Anybody may send an unknown token, so nothing but a message comes of it. */
  noteUnknownToken(daemonId: string | null): void {
    const known = this.#unknownDaemons
    if (!this.isOlderCopy || daemonId === null || !isUuid(daemonId) || known.size >= MOST_UNKNOWN) return
    if (known.has(daemonId)) return
    known.add(daemonId)
    this.#parts.log.warn('a daemon cannot report, because the copy does not know its token: enrol it again', {
      daemon: daemonId,
    })
  }

  /** Records that a daemon has sent everything that it has, in the transaction of the last of it. */
  async recordFullReport(tx: Db, daemon: DaemonRow, copyId: string): Promise<void> {
    const { store, now } = this.#parts
    const copy = this.#copies.find(each => each.id === copyId)
    if (!copy || !concernsRealm(copy, daemon.realm_id) || daemon.approved_at === null) return
    const { confirmations } = store
    const { id, name, realm_id } = daemon
    const last_seen_at = daemon.called_at ?? daemon.last_seen_at
    const at = { reported_at: now(), compared_at: now() }
    await tx
      .insert(confirmations)
      .values({ copy_id: copyId, id, kind: 'daemon', name, realm_id, last_seen_at, ...at, offer: null })
      .onConflictDoUpdate({ target: [confirmations.copy_id, confirmations.id], set: at })
  }

  /** Records that the database is an older copy, which its identity shows. Its commits are counted from a raised count. */
  async recordCopyHere(tx: Db, kind: CopyKind): Promise<void> {
    const count = await highestCount(this.#parts.store, tx)
    const raised = count + GAP
    await this.recordCopy(tx, { kind, realm_id: null, count, raised })
    await this.raiseCount(tx, raised)
  }

  async recordCopy(tx: Db, found: Omit<Discovery, 'process' | 'now' | 'lived'>): Promise<void> {
    const { store, log, now, lived, process } = this.#parts
    const copy = await holdJobsOfCopy(store, tx, { ...found, process, now: now(), lived: lived() })
    log.warn(
      copy.lost === null
        ? 'the database was taken over by another server: what waited in it is not given out before it is known that nothing was lost'
        : 'the database is an older copy: what waited in it is given out when the daemons have said what they executed since',
      { copy: copy.id, kind: copy.kind, written_at: new Date(copy.written_at).toISOString(), realm: copy.realm_id },
    )
  }

  /** Makes the next commits count from `raised`, so that no count means both a commit that was lost and a new one. */
  async raiseCount(tx: Db, raised: number): Promise<void> {
    const { lineage, commitCounts, dialect, commits } = this.#parts.store
    await tx.update(lineage).set({ base: raised })
    if (dialect === 'sqlite') await tx.update(commitCounts).set({ count: raised }).where(eq(commitCounts.writer, ''))
    commits.noteCount(raised)
  }

  /** Releases the jobs that are no longer in doubt, and notifies the other hubs. */
  async applyConfirmations(): Promise<void> {
    await this.releaseJobs()
    this.#parts.notifier.notify(COPIES_TOPIC)
  }

  releaseJobs(): Promise<void> {
    this.#releasing ??= this.#releaseNow().finally(() => {
      this.#releasing = null
    })
    return this.#releasing
  }

  async #releaseNow(): Promise<void> {
    const { store, log, lived, notifier } = this.#parts
    this.releasedAt = lived()
    const { released, ended } = await releaseJobs(store, this.#parts)
    if (released.length === 0 && ended.length === 0) return
    await this.read()
    for (const { id, lost } of ended) {
      const how = lost ? 'the daemons have said what they executed since' : 'nothing was lost'
      log.info(`the hub trusts its database again: ${how}`, { copy: id })
    }
    for (const realm of released) notifier.notify(`realm ${realm}`)
    notifier.notify(COPIES_TOPIC)
  }

  warn(error: unknown): void {
    this.#parts.log.warn('what is known of the database could not be stored', { error: messageOf(error) })
  }
}

export async function highestCount({ commitCounts }: Store, tx: Db): Promise<number> {
  const [row] = await tx.select({ count: max(commitCounts.count) }).from(commitCounts)
  return Number(row?.count ?? 0)
}
