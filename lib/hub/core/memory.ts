// Whether the database is the one that this hub had before, and whole. A database knows its place, which no copy shares
// with it, and has a count of its commits, which daemons remember. older-copy.ts says what follows when either is wrong.

import { createHmac } from 'node:crypto'
import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { sameSecret } from '../../secrets/secret-form.ts'
import type { Remembered } from '../../wire/protocol.ts'
import type { Notifier } from './notifier.ts'
import {
  type Copy,
  type CopyKind,
  concerns,
  discover,
  type Found,
  GAP,
  isServer,
  isTrusted,
  readCopies,
  settle,
  type Witness,
} from './older-copy.ts'

/** How often a hub notes that it is there, and how much it has committed. */
const BEAT_MS = 10_000
/** While it is not known whether a failover lost anything, daemons are not asked to send everything before this time. */
const UNCLEAR_MS = 10_000
/** Wakes all hubs when something about older copies has changed. */
const COPY_NEWS = 'copies'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const MOST_STRANGERS = 100

type DaemonRow = Store['daemons']['$inferSelect']
type MemoryRow = Store['memory']['$inferSelect']

interface Parts {
  store: Store
  log: Log
  now: () => number
  notifier: Notifier
}

export class Memory {
  readonly #parts: Parts
  readonly #process = crypto.randomUUID()
  #row: MemoryRow | null = null
  #copies: Copy[] = []
  /** Below this count, a daemon may have seen something that was lost. */
  #safe = 0
  #changing: Promise<void> | null = null
  #settling: Promise<void> | null = null
  #beatAt = 0
  #settledAt = 0
  #signed: Remembered | null = null
  #foreign = new Set<string>()
  readonly #strangers = new Set<string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Compares the database with what is known of it. Nothing may be served before. */
  async open(): Promise<void> {
    const { store, notifier } = this.#parts
    store.commits.learn(await store.storedCount())
    await this.#recognize()
    store.commits.changed = () => this.#changed()
    notifier.on(COPY_NEWS, () => void this.#read().catch(error => this.#warn(error)))
    await this.#read()
    try {
      if (store.markFile) await this.#renewMark()
      await this.#beat()
      await this.#settle()
    } catch (error) {
      // A full disk keeps no hub from answering what it can.
      this.#warn(error)
    }
  }

  /** Notes that this process writes no more. */
  async close(): Promise<void> {
    const { store, now } = this.#parts
    if (this.#row === null) return
    const { hubProcesses } = store
    const left = { left_at: now(), beat_at: now() }
    try {
      await store.write(tx => tx.update(hubProcesses).set(left).where(eq(hubProcesses.id, this.#process)))
      this.#mark()
    } catch (error) {
      this.#warn(error)
    }
  }

  /** Called every few seconds. */
  async tick(): Promise<void> {
    const { store, now } = this.#parts
    if (this.#row === null) return
    if (store.dialect === 'postgres') {
      if ((await store.place()) !== store.commits.place) await this.#changed()
      store.commits.learn(await store.storedCount())
    }
    // A command, or another hub, may have changed something.
    if (store.dialect === 'postgres' || this.isOlderCopy) await this.#read()
    if (now() - this.#beatAt >= BEAT_MS) await this.#beat()
    if (this.isOlderCopy || now() - this.#settledAt >= BEAT_MS) await this.#settle()
  }

  /** The copies that are not trusted yet. */
  get openCopies(): readonly Copy[] {
    return this.#copies.filter(({ ended_at }) => ended_at === null)
  }

  get isOlderCopy(): boolean {
    return this.#copies.some(({ ended_at }) => ended_at === null)
  }

  /** Whether an event of this time may have been told by the database that was lost, as far as that is known. */
  doubtAt(realmId: string, at: number): 'unclear' | 'lost' | null {
    const before = this.#copies.filter(copy => concerns(copy, realmId) && copy.lost !== false && at <= copy.found_at)
    if (before.length === 0) return null
    return before.some(({ lost }) => lost) ? 'lost' : 'unclear'
  }

  /** Whether a daemon has not said yet what it executed since an older copy was made. */
  awaits(daemonId: string): boolean {
    return this.openCopies.some(({ witnesses }) => {
      const known = witnesses.get(daemonId)
      return known !== undefined && known.reported_at === null && known.passed_at === null
    })
  }

  /** What people have to know, in words. */
  notice(): { older_copy?: string } {
    if (!this.isOlderCopy) return {}
    const silent = this.openCopies.flatMap(({ witnesses }) =>
      [...witnesses.values()].filter(
        each => each.kind === 'daemon' && each.reported_at === null && each.passed_at === null,
      ),
    )
    const isKnown = this.openCopies.some(({ lost }) => lost)
    const what = isKnown
      ? 'the hub is on an older copy of its database and holds what waited in it'
      : 'another server goes on with the database, and the hub holds what waited in it until it is shown that nothing was lost'
    return { older_copy: `${what}; ${silent.length} daemons have not reported (\`hub reconcile\` names them)` }
  }

  /** The ids of daemons that call with a token that the copy does not know. */
  get strangers(): readonly string[] {
    return [...this.#strangers]
  }

  /** A daemon has called with a token that is not known. Anybody may say so, and nothing but a message comes of it. */
  refused(daemonId: string | null): void {
    if (!this.isOlderCopy || daemonId === null || !UUID.test(daemonId) || this.#strangers.size >= MOST_STRANGERS) return
    if (this.#strangers.has(daemonId)) return
    this.#strangers.add(daemonId)
    this.#parts.log.warn('a daemon cannot report, because the copy does not know its token: enrol it again', {
      daemon: daemonId,
    })
  }

  /** What a reply to a daemon tells it to remember. */
  told(daemon: Pick<DaemonRow, 'id' | 'realm_id' | 'approved_at'>): { memory?: Remembered } {
    if (this.#row === null) return {}
    const { known } = this.#parts.store.commits
    if (this.#signed?.count !== known) {
      const { lineage } = this.#row
      this.#signed = { lineage, count: known, mac: this.#macOf(known) }
    }
    const recall = this.isOlderCopy ? this.#recall(daemon) : undefined
    return { memory: { ...this.#signed!, ...(recall !== undefined && { recall }) } }
  }

  /** Compares what a daemon remembers. There is nothing to wait for as long as it cannot have seen more than there is. */
  hear(daemon: DaemonRow, told: Remembered | undefined): Promise<void> | undefined {
    if (this.#row === null || told === undefined || daemon.approved_at === null) return undefined
    const { known } = this.#parts.store.commits
    const isUsual = told.lineage === this.#row.lineage && told.count <= known && told.count >= this.#safe
    if (isUsual && !this.#awaitsWord(daemon)) return undefined
    return this.#listen(daemon, told)
  }

  /** A daemon has sent everything that it has. Inside the transaction of the last of it. */
  async reported(tx: Db, daemon: DaemonRow, copyId: string): Promise<void> {
    const { store, now } = this.#parts
    const copy = this.#copies.find(each => each.id === copyId)
    if (!copy || !concerns(copy, daemon.realm_id) || daemon.approved_at === null) return
    const { witnesses } = store
    const at = { reported_at: now(), compared_at: now() }
    await tx
      .insert(witnesses)
      .values({ ...witnessOf(daemon), copy_id: copyId, ...at, offer: null })
      .onConflictDoUpdate({ target: [witnesses.copy_id, witnesses.id], set: at })
  }

  /** Looks what has become possible, in this process and the others. */
  async changedWitness(): Promise<void> {
    await this.#settle()
    this.#parts.notifier.notify(COPY_NEWS)
  }

  #macOf(count: number): string {
    const { lineage, secret } = this.#row!
    return createHmac('sha256', secret).update(`${lineage} ${count}`).digest('hex').slice(0, 32)
  }

  #recall({ id, realm_id, approved_at }: Pick<DaemonRow, 'id' | 'realm_id' | 'approved_at'>): string | undefined {
    if (approved_at === null) return undefined
    const { now } = this.#parts
    return this.openCopies.find(
      copy =>
        concerns(copy, realm_id) &&
        (copy.lost !== null || now() - copy.found_at > UNCLEAR_MS) &&
        (copy.witnesses.get(id)?.reported_at ?? null) === null,
    )?.id
  }

  /** Whether it is still unknown what the daemon has seen. */
  #awaitsWord({ id }: DaemonRow): boolean {
    return (
      this.isOlderCopy &&
      this.openCopies.some(({ witnesses }) => witnesses.has(id) && witnesses.get(id)!.compared_at === null)
    )
  }

  async #listen(daemon: DaemonRow, told: Remembered): Promise<void> {
    const { store, log, now } = this.#parts
    const { lineage } = this.#row!
    const about = { daemon: daemon.id, name: daemon.name }
    if (told.lineage !== lineage || !sameSecret(told.mac, this.#macOf(told.count))) {
      const key = `${daemon.id} ${told.lineage}`
      if (!this.#foreign.has(key)) {
        this.#foreign.add(key)
        const why =
          told.lineage === lineage ? 'its count is not signed by this database' : 'it remembers another database'
        log.warn('what a daemon remembers of the hub is ignored', { ...about, why })
      }
      return
    }
    if (told.count > store.commits.known) store.commits.learn(await store.storedCount())
    const lost = this.#copies.find(({ count, raised }) => told.count > count && told.count < raised)
    const isAhead = told.count > store.commits.known
    await store.write(async tx => {
      const { copies, witnesses } = store
      const of = and(eq(witnesses.id, daemon.id), isNull(witnesses.compared_at))
      await tx.update(witnesses).set({ compared_at: now() }).where(of)
      if (lost && lost.ended_at === null) {
        await tx
          .update(copies)
          .set({ lost: true })
          .where(and(eq(copies.id, lost.id), isNull(copies.lost)))
        return
      }
      const known = this.#copies.some(
        copy =>
          copy.kind === 'behind' &&
          concerns(copy, daemon.realm_id) &&
          copy.count < told.count &&
          told.count < copy.raised,
      )
      if (lost && !known && !concerns(lost, daemon.realm_id)) {
        await this.#discover(tx, { kind: 'behind', realm_id: daemon.realm_id, count: lost.count, raised: lost.raised })
      } else if (lost && lost.lost === false) {
        await this.#discover(tx, { kind: 'behind', realm_id: daemon.realm_id, count: lost.count, raised: lost.raised })
      } else if (isAhead) {
        const count = await highest(store, tx)
        if (told.count <= count) return
        const raised = told.count + GAP
        await this.#discover(tx, { kind: 'behind', realm_id: daemon.realm_id, count, raised })
        await this.#raise(tx, raised)
      }
    })
    await this.#read()
    await this.changedWitness()
  }

  /** Finds out at the start whether the database is the one that was here. */
  async #recognize(): Promise<void> {
    const { store, log } = this.#parts
    const place = await store.place()
    const beside = store.markFile?.read() ?? null
    const mark = crypto.randomUUID()
    const [row] = await store.db.select().from(store.memory)
    if (!row) {
      const made: MemoryRow = {
        ...{ id: 1, lineage: crypto.randomUUID(), secret: `${crypto.randomUUID()}${crypto.randomUUID()}` },
        ...{ base: 0, place, mark },
      }
      // The database was made before it knew itself, and one that did was here.
      const wasHere = beside !== null && beside.count > 0
      await store.writeAnywhere(async tx => {
        const added = await tx.insert(store.memory).values(made).onConflictDoNothing().returning()
        if (added.length > 0 && wasHere) await this.#found(tx, 'restored', place)
      })
    } else {
      const kind = kindOf(row, place, beside, await store.storedCount())
      if (kind !== null) {
        log.warn('the database is another one than before', { was: row.place, is: place })
        await store.writeAnywhere(async tx => {
          const [now] = await tx.select().from(store.memory)
          // Another hub may have found it at the same time.
          if (now!.place !== place || store.dialect === 'sqlite') await this.#found(tx, kind, place)
        })
      }
    }
    const [known] = await store.db.select().from(store.memory)
    this.#row = known!
    store.commits.place = store.dialect === 'sqlite' ? '' : place
    store.commits.learn(await store.storedCount())
  }

  /** A copy of the file and of its mark, made before this start, is told by the old mark. */
  async #renewMark(): Promise<void> {
    const { store } = this.#parts
    const mark = crypto.randomUUID()
    const { lineage, mark: before } = this.#row!
    const count = await store.storedCount()
    store.markFile!.write({ lineage, mark, before, count })
    await store.write(tx => tx.update(store.memory).set({ mark }))
    this.#row = { ...this.#row!, mark }
    store.markFile!.write({ lineage, mark, before: null, count })
  }

  #mark(): void {
    const { store } = this.#parts
    const { lineage, mark } = this.#row!
    store.markFile?.write({ lineage, mark, before: null, count: store.commits.known })
  }

  /** A write, or the regular look, has found the database elsewhere. */
  #changed(): Promise<void> {
    this.#changing ??= this.#compare().finally(() => {
      this.#changing = null
    })
    return this.#changing
  }

  async #compare(): Promise<void> {
    const { store, log, now } = this.#parts
    const place = await store.place()
    const { commits } = store
    if (place === commits.place || place === '') return
    const lost = await this.#lacksOwn()
    log.warn('the database is elsewhere', { was: commits.place, is: place, lacks_own_commits: lost })
    await store.writeAnywhere(async tx => {
      const { copies, memory, witnesses } = store
      const [row] = await tx.select().from(memory)
      if (row?.lineage !== this.#row!.lineage) throw new Error('the database at this address belongs to another hub')
      if (row.place !== place) await this.#found(tx, kindOf(row, place, null, 0) ?? 'failover', place)
      const [copy] = await tx.select().from(copies).where(isNull(copies.realm_id)).orderBy(sql`${copies.found_at} desc`)
      const at = { compared_at: now() }
      await tx
        .update(witnesses)
        .set(at)
        .where(and(eq(witnesses.copy_id, copy!.id), eq(witnesses.id, this.#process)))
      if (!lost) return
      if (copy!.ended_at === null) await tx.update(copies).set({ lost: true }).where(eq(copies.id, copy!.id))
      else await this.#discover(tx, { kind: 'behind', realm_id: null, count: copy!.count, raised: copy!.raised })
    })
    commits.place = place
    commits.lanes.clear()
    commits.learn(await store.storedCount())
    await this.#read()
    await this.changedWitness()
  }

  /** Whether a commit of this process is missing. */
  async #lacksOwn(): Promise<boolean> {
    const { store } = this.#parts
    const { lanes } = store.commits
    if (lanes.size === 0) return false
    const rows = await store.db.select().from(store.memoryCounts)
    const stored = new Map(rows.map(({ lane, count }) => [lane, count]))
    return [...lanes].some(([lane, count]) => (stored.get(lane) ?? 0) < count)
  }

  /** The database is a copy, as its place shows. */
  async #found(tx: Db, kind: CopyKind, place: string): Promise<void> {
    const { store } = this.#parts
    const count = await highest(store, tx)
    const raised = count + GAP
    await this.#discover(tx, { kind, realm_id: null, count, raised })
    await tx.update(store.memory).set({ place })
    await this.#raise(tx, raised)
  }

  async #discover(tx: Db, found: Omit<Found, 'process' | 'now'>): Promise<void> {
    const { store, log, now } = this.#parts
    const copy = await discover(store, tx, { ...found, process: this.#process, now: now() })
    log.warn(
      copy.lost === null
        ? 'the database was taken over by another server: what waited in it is not given out before it is known that nothing was lost'
        : 'the database is an older copy: what waited in it is given out when the daemons have said what they executed since',
      { copy: copy.id, kind: copy.kind, written_at: new Date(copy.written_at).toISOString(), realm: copy.realm_id },
    )
  }

  /** Counts go on from `raised`, so that they are told from those that were lost. */
  async #raise(tx: Db, raised: number): Promise<void> {
    const { memory, memoryCounts, dialect, commits } = this.#parts.store
    await tx.update(memory).set({ base: raised })
    if (dialect === 'sqlite') await tx.update(memoryCounts).set({ count: raised }).where(eq(memoryCounts.lane, ''))
    commits.learn(raised)
  }

  async #read(): Promise<void> {
    const { store } = this.#parts
    if (!this.isOlderCopy) this.#strangers.clear()
    this.#copies = await readCopies(store, store.db)
    this.#safe = this.#copies.reduce((most, { raised }) => Math.max(most, raised), 0)
    const [row] = await store.db.select().from(store.memory)
    if (row) this.#row = row
  }

  async #beat(): Promise<void> {
    const { store, now } = this.#parts
    this.#beatAt = now()
    const { hubProcesses } = store
    const beat = { beat_at: now() }
    await store.write(tx =>
      tx
        .insert(hubProcesses)
        .values({ id: this.#process, started_at: now(), ...beat })
        .onConflictDoUpdate({ target: hubProcesses.id, set: beat }),
    )
    this.#mark()
  }

  #settle(): Promise<void> {
    this.#settling ??= this.#settleNow().finally(() => {
      this.#settling = null
    })
    return this.#settling
  }

  async #settleNow(): Promise<void> {
    const { store, log, now, notifier } = this.#parts
    this.#settledAt = now()
    const { released, ended } = await settle(store, now())
    if (released.length === 0 && ended.length === 0) return
    await this.#read()
    for (const { id, lost } of ended) {
      const how = lost ? 'the daemons have said what they executed since' : 'nothing was lost'
      log.info(`the hub trusts its database again: ${how}`, { copy: id })
    }
    for (const realm of released) notifier.notify(`realm ${realm}`)
    notifier.notify(COPY_NEWS)
  }

  #warn(error: unknown): void {
    this.#parts.log.warn('what is known of the database could not be stored', { error: messageOf(error) })
  }
}

async function highest({ memoryCounts }: Store, tx: Db): Promise<number> {
  const [row] = await tx.select({ count: sql<number | null>`max(${memoryCounts.count})` }).from(memoryCounts)
  return Number(row?.count ?? 0)
}

const witnessOf = ({
  id,
  name,
  realm_id,
  last_seen_at,
}: DaemonRow): Pick<Witness, 'id' | 'name' | 'realm_id'> & {
  kind: 'daemon'
  last_seen_at: number
} => ({ id, kind: 'daemon', name, realm_id, last_seen_at })

/** What became of the database whose row says where it was; null when it is the same. */
function kindOf(
  row: MemoryRow,
  place: string,
  beside: { lineage: string; mark: string; before: string | null; count: number } | null,
  count: number,
): CopyKind | null {
  if (isTrusted(row, place, beside, count)) return null
  const withoutTimeline = (text: string) => text.split('/').toSpliced(1, 1).join('/')
  return isServer(place) && withoutTimeline(place) === withoutTimeline(row.place) ? 'failover' : 'restored'
}
