// The counts of commits that daemons keep. Each reply to a daemon has the count of the hub, signed, and the daemon sends the
// highest one with its next call. A daemon that has seen a higher count than the database has shows that commits were
// lost. One hub serves a SQLite database at a time, so what an earlier process has counted is there when the next one
// starts: a count of an earlier process that is above that of the start was lost, however far this process has counted.

import { createHmac } from 'node:crypto'
import { and, eq, gt, inArray, isNull, lt } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import { sameSecret } from '../../secrets/secret-form.ts'
import type { Remembered } from '../../wire/protocol.ts'
import { concernsRealm } from './copies.ts'
import type { DatabaseIdentity } from './database-identity.ts'
import { GAP, highestCount, type LineageParts, type OlderCopies } from './older-copies.ts'

/** While it is not known whether a failover lost anything, daemons are not asked to send everything before this time. */
const UNCLEAR_MS = 10_000

type DaemonRow = Tables['daemons']['$inferSelect']

export class CommitCounts {
  readonly #parts: LineageParts
  readonly #identity: DatabaseIdentity
  readonly #copies: OlderCopies
  #signed: Remembered | null = null
  /** The reply with that to daemons which have nothing else to do. All replies share it. */
  #reply: { memory?: Remembered } = {}
  /** Daemons whose counts were ignored, with the lineage that they sent: the log names each once. */
  readonly #ignored = new Set<string>()

  constructor(parts: LineageParts, identity: DatabaseIdentity, copies: OlderCopies) {
    this.#parts = parts
    this.#identity = identity
    this.#copies = copies
  }

  replyTo(daemon: Pick<DaemonRow, 'id' | 'realm_id' | 'approved_at'>): { memory?: Remembered } {
    const { row } = this.#identity
    if (row === null) return {}
    const { store, process } = this.#parts
    const { known } = store.commits
    if (this.#signed?.count !== known) {
      this.#signed = { lineage: row.lineage, count: known, mac: this.#macOf(known, process) }
      this.#reply = { memory: this.#signed }
    }
    const recall = this.#copies.isOlderCopy ? this.#copyToReportFor(daemon) : undefined
    return recall === undefined ? this.#reply : { memory: { ...this.#signed, recall } }
  }

  compare(daemon: DaemonRow, seen: Remembered | undefined): Promise<void> | undefined {
    const { row } = this.#identity
    if (row === null || seen === undefined || daemon.approved_at === null) return undefined
    const isCertain = this.#isOwn(seen) || seen.count >= this.#copies.safeCount
    const highest = this.#highestOf(seen, this.#parts.store.commits.known)
    const isUsual = seen.lineage === row.lineage && seen.count <= highest && isCertain
    if (isUsual && !this.#awaitsCountOf(daemon)) return undefined
    return this.#compareUnusual(daemon, seen)
  }

  /** Signs a count, and names the process that has sent it: `<process>.<signature>`. Older hubs sent the signature alone. */
  #macOf(count: number, process: string | null): string {
    const { lineage, secret } = this.#identity.row!
    const signed = process === null ? `${lineage} ${count}` : `${lineage} ${count} ${process}`
    const signature = createHmac('sha256', secret).update(signed).digest('hex').slice(0, 32)
    return process === null ? signature : `${process}.${signature}`
  }

  /** Whether this process has sent the count, and nobody else can have put an older database in its place since. */
  #isOwn({ mac }: Remembered): boolean {
    return this.#parts.store.dialect === 'sqlite' && processOf(mac) === this.#parts.process
  }

  /** The highest count that its sender can have sent, if no commit was lost. `known` is the highest of the database. */
  #highestOf(seen: Remembered, known: number): number {
    return this.#parts.store.dialect === 'sqlite' && !this.#isOwn(seen) ? this.#identity.countAtStart : known
  }

  /** The older copy for which the daemon has to send everything that it has. */
  #copyToReportFor({ id, realm_id, approved_at }: Pick<DaemonRow, 'id' | 'realm_id' | 'approved_at'>) {
    if (approved_at === null) return undefined
    const { lived } = this.#parts
    return this.#copies.untrusted.find(
      copy =>
        concernsRealm(copy, realm_id) &&
        (copy.lost !== null || lived() - (copy.found_lived ?? copy.found_at) > UNCLEAR_MS) &&
        (copy.confirmations.get(id)?.reported_at ?? null) === null,
    )?.id
  }

  /** Whether the daemon has still to say which count it has seen. */
  #awaitsCountOf({ id }: DaemonRow): boolean {
    return this.#copies.untrusted.some(({ confirmations }) => confirmations.get(id)?.compared_at === null)
  }

  async #compareUnusual(daemon: DaemonRow, seen: Remembered): Promise<void> {
    const { store, log, now } = this.#parts
    const { lineage } = this.#identity.row!
    if (seen.lineage !== lineage || !sameSecret(seen.mac, this.#macOf(seen.count, processOf(seen.mac)))) {
      const key = `${daemon.id} ${seen.lineage}`
      if (this.#ignored.has(key)) return
      this.#ignored.add(key)
      const why =
        seen.lineage === lineage ? 'its count is not signed by this database' : 'it remembers another database'
      log.warn('the count of commits that a daemon sends is ignored', { daemon: daemon.id, name: daemon.name, why })
      return
    }
    if (seen.count > store.commits.known) store.commits.noteCount(await store.storedCount())
    const { realm_id } = daemon
    await store.write(async tx => {
      const { copies, confirmations } = store
      const open = and(eq(confirmations.id, daemon.id), isNull(confirmations.compared_at))
      await tx.update(confirmations).set({ compared_at: now() }).where(open)
      const ofSeen = and(lt(copies.count, seen.count), gt(copies.raised, seen.count))
      /** The copies whose lost commits the daemon has seen. Another daemon may have shown one at the same time. */
      const found = this.#isOwn(seen) ? [] : await tx.select().from(copies).where(ofSeen)
      const known = found.filter(copy => concernsRealm(copy, realm_id) && copy.lost !== false)
      if (known.length > 0) {
        const ids = known.map(({ id }) => id)
        const isUnclear = and(inArray(copies.id, ids), isNull(copies.lost), isNull(copies.ended_at))
        await tx.update(copies).set({ lost: true }).where(isUnclear)
      } else if (found.length > 0) {
        const { count, raised } = found[0]!
        await this.#copies.recordCopy(tx, { kind: 'behind', realm_id, count, raised })
      } else {
        // Other hubs may have committed since: what they have counted was not lost.
        const stored = await highestCount(store, tx)
        const count = this.#highestOf(seen, stored)
        if (seen.count <= count) return
        const raised = Math.max(seen.count, stored) + GAP
        await this.#copies.recordCopy(tx, { kind: 'behind', realm_id, count, raised })
        await this.#copies.raiseCount(tx, raised)
      }
    })
    await this.#copies.read()
    await this.#copies.applyConfirmations()
  }
}

/** The process that has sent a signed count; null for one of an older hub. */
function processOf(mac: string): string | null {
  const end = mac.lastIndexOf('.')
  return end < 0 ? null : mac.slice(0, end)
}
