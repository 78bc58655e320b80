// Whether the database is the one that this hub had before. The identity of a database (its file, or its server and
// timeline) is stored in it, and a copy does not share it. A hub compares the two at the start, and PostgreSQL's at every
// write. A file beside a SQLite database shows when an older file has replaced the database.

import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Marked } from '../../../db/hub/mark-file.ts'
import type { Store } from '../../../db/hub/store.ts'
import type { CopyKind } from './copies.ts'
import type { LineageParts, OlderCopies } from './older-copies.ts'

type LineageRow = Store['lineage']['$inferSelect']

export class DatabaseIdentity {
  readonly #parts: LineageParts
  readonly #copies: OlderCopies
  #row: LineageRow | null = null
  #checking: Promise<void> | null = null
  /** When this process last noted that it runs, in lived time. */
  heartbeatAt = 0
  /** The highest count of the commits that were there when this process started. */
  countAtStart = 0

  constructor(parts: LineageParts, copies: OlderCopies) {
    this.#parts = parts
    this.#copies = copies
  }

  /** Null before the database was recognized. */
  get row(): LineageRow | null {
    return this.#row
  }

  /** Finds out at the start whether the database is the one that was here. */
  async recognize(): Promise<void> {
    const { store, log } = this.#parts
    this.countAtStart = await store.storedCount()
    store.commits.noteCount(this.countAtStart)
    const identity = await store.identity()
    const marked = store.markFile?.read() ?? null
    const [row] = await store.db.select().from(store.lineage)
    if (!row) {
      const fresh: LineageRow = {
        ...{ id: 1, lineage: crypto.randomUUID(), secret: `${crypto.randomUUID()}${crypto.randomUUID()}` },
        ...{ base: 0, identity, mark: crypto.randomUUID() },
      }
      // This database is older than the table `memory`, but a newer one was here.
      const wasReplaced = marked !== null && marked.count > 0
      await store.writeUnchecked(async tx => {
        const added = await tx.insert(store.lineage).values(fresh).onConflictDoNothing().returning()
        if (added.length > 0 && wasReplaced) await this.#copies.recordCopyHere(tx, 'restored')
      })
    } else {
      const kind = kindOfChange(row, identity, marked, await store.storedCount())
      if (kind !== null) {
        log.warn('the database is another one than before', { was: row.identity, is: identity })
        await store.writeUnchecked(async tx => {
          const [now] = await tx.select().from(store.lineage)
          // Another hub may have found it at the same time.
          if (now!.identity === identity && store.dialect !== 'sqlite') return
          await this.#copies.recordCopyHere(tx, kind)
          await tx.update(store.lineage).set({ identity })
        })
      }
    }
    const [known] = await store.db.select().from(store.lineage)
    this.#row = known!
    store.commits.identity = store.dialect === 'sqlite' ? '' : identity
    store.commits.noteCount(await store.storedCount())
    store.commits.onIdentityChange = () => this.#checkOnce()
  }

  /** Gives a SQLite database a new mark: a copy of the file and of its mark, made before this start, has the old one. */
  async renewMark(): Promise<void> {
    const { store } = this.#parts
    const { markFile } = store
    if (!markFile) return
    const mark = crypto.randomUUID()
    const { lineage, mark: before } = this.#row!
    const count = await store.storedCount()
    markFile.write({ lineage, mark, before, count })
    await store.write(tx => tx.update(store.lineage).set({ mark }))
    this.#row = { ...this.#row!, mark }
    markFile.write({ lineage, mark, before: null, count })
  }

  /** Notes that this process runs, and how much it has committed. */
  async heartbeat(): Promise<void> {
    const { store, now, lived, process, keys } = this.#parts
    this.heartbeatAt = lived()
    const { hubProcesses } = store
    const beat = { beat_at: lived(), beat_time: now() }
    await store.write(tx =>
      tx
        .insert(hubProcesses)
        .values({ id: process, started_at: now(), keys: keys(), ...beat })
        .onConflictDoUpdate({ target: hubProcesses.id, set: beat }),
    )
    this.#writeMark()
  }

  /** Notes that this process writes no more. */
  async leave(): Promise<void> {
    const { store, now, lived, process } = this.#parts
    const { hubProcesses } = store
    const left = { left_at: now(), beat_at: lived(), beat_time: now() }
    await store.write(tx => tx.update(hubProcesses).set(left).where(eq(hubProcesses.id, process)))
    this.#writeMark()
  }

  #writeMark(): void {
    const { store } = this.#parts
    const { lineage, mark } = this.#row!
    store.markFile?.write({ lineage, mark, before: null, count: store.commits.known })
  }

  /** Compares the identity of a database of PostgreSQL with the one that this process knows. */
  async check(): Promise<void> {
    const { store } = this.#parts
    if ((await store.identity()) !== store.commits.identity) await this.#checkOnce()
    store.commits.noteCount(await store.storedCount())
  }

  #checkOnce(): Promise<void> {
    this.#checking ??= this.#recordChange().finally(() => {
      this.#checking = null
    })
    return this.#checking
  }

  async #recordChange(): Promise<void> {
    const { store, log, now, process } = this.#parts
    const { commits } = store
    const identity = await store.identity()
    if (identity === commits.identity || identity === '') return
    const lost = await this.#lacksOwnCommits()
    log.warn('the database has another identity than before', {
      was: commits.identity,
      is: identity,
      lacks_own_commits: lost,
    })
    await store.writeUnchecked(async tx => {
      const { copies, lineage, confirmations } = store
      const [row] = await tx.select().from(lineage)
      if (row?.lineage !== this.#row!.lineage) throw new Error('the database at this address belongs to another hub')
      if (row.identity !== identity) {
        await this.#copies.recordCopyHere(tx, kindOfChange(row, identity, null, 0) ?? 'failover')
        await tx.update(lineage).set({ identity })
      }
      const [copy] = await tx.select().from(copies).where(isNull(copies.realm_id)).orderBy(sql`${copies.found_at} desc`)
      await tx
        .update(confirmations)
        .set({ compared_at: now() })
        .where(and(eq(confirmations.copy_id, copy!.id), eq(confirmations.id, process)))
      if (!lost) return
      const { id, count, raised, ended_at } = copy!
      if (ended_at === null) await tx.update(copies).set({ lost: true }).where(eq(copies.id, id))
      else await this.#copies.recordCopy(tx, { kind: 'behind', realm_id: null, count, raised })
    })
    commits.identity = identity
    commits.lastCounts.clear()
    commits.noteCount(await store.storedCount())
    await this.#copies.read()
    await this.#copies.applyConfirmations()
  }

  /** Whether a commit of this process is missing. */
  async #lacksOwnCommits(): Promise<boolean> {
    const { store } = this.#parts
    const { lastCounts } = store.commits
    if (lastCounts.size === 0) return false
    const rows = await store.db.select().from(store.commitCounts)
    const stored = new Map(rows.map(({ writer, count }) => [writer, count]))
    return [...lastCounts].some(([writer, count]) => (stored.get(writer) ?? 0) < count)
  }
}

/** What became of the database with this row; null when it is the same. `marked` is the file beside it. */
function kindOfChange(
  row: Pick<LineageRow, 'identity' | 'lineage' | 'mark'>,
  identity: string,
  marked: Marked | null,
  count: number,
): CopyKind | null {
  if (isSame(row, identity, marked, count)) return null
  const withoutTimeline = (text: string) => text.split('/').toSpliced(1, 1).join('/')
  return isOfServer(identity) && withoutTimeline(identity) === withoutTimeline(row.identity) ? 'failover' : 'restored'
}

/** Whether a database has the identity that its row says, and all commits that the file beside it says. */
function isSame(
  row: Pick<LineageRow, 'identity' | 'lineage' | 'mark'>,
  identity: string,
  marked: Marked | null,
  count: number,
): boolean {
  // PostgreSQL, or an engine that does not say the identity.
  if (identity === '' || isOfServer(identity)) return row.identity === identity
  if (!isSameFile(row.identity, identity)) return false
  if (marked === null || marked.lineage !== row.lineage) return false
  return [marked.mark, marked.before].includes(row.mark) && marked.count <= count
}

/** Whether the identity is that of a database on a server. */
const isOfServer = (identity: string): boolean => identity.split('/').length > 2

/** A file is known by its time of birth. Where that is unknown, its inode has to do, which may change at a mount. */
function isSameFile(one: string, other: string): boolean {
  const [[inode, born], [otherInode, otherBorn]] = [one.split('/'), other.split('/')]
  return born && otherBorn ? born === otherBorn : inode === otherInode
}
