// The audit log of a home: who started, resumed, cancelled and deleted runs, decided reviews, and changed settings,
// workspaces and keys. An entry is written in the transaction of the change, without a hash. Soon afterwards entries are
// sealed into the chain of the home, in the order of their numbers. The log holds names, never inputs, values or comments.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { isDiskError, openForReading, openRunDatabase, readMigrations, versionOf } from '../../../db/open.ts'
import { type Chain, GENESIS, type Link, sealOf } from '../../audit/audit-chain.ts'
import type { AuditSource, Sealed } from '../../audit/audit-export.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import { counted } from '../../wire/page.ts'
import type { HomeAuditEntry } from '../../wire/records/audit.ts'
import { databaseFile, makeHome } from './home.ts'
import { localName } from './local-name.ts'
import { takeLock } from './lock.ts'
import { MIGRATIONS, readRunDatabase } from './run-database.ts'

/** What somebody did. */
export interface NewEntry {
  /** `local:<user of the machine>`, or `hub:<user of the hub>`. */
  actor: string
  /** The route, such as `runs/start`. */
  action: string
  target: string | null
}

/** The actor behind an order of the hub, which names a user, or nobody. */
export function hubActor(name: string | undefined): string {
  return name !== undefined && /^[a-z0-9][a-z0-9._-]{0,62}$/.test(name) ? `hub:${name}` : 'hub'
}

export interface AuditFilter {
  action?: string
  since?: number
  until?: number
}

type HomeSealed = Sealed & HomeAuditEntry

/** How long after an entry the sealing begins, so that entries of one moment are sealed together. */
const SEAL_MS = 500
/** How many entries are sealed in one transaction. */
const SEALED_AT_ONCE = 500
/** How many entries are deleted in one transaction. */
const DELETED_AT_ONCE = 1_000

/** Reads the log. */
export class AuditLog {
  protected readonly db: Database

  constructor(db: Database) {
    this.db = db
  }

  list({ action, since, until }: AuditFilter, { limit, offset }: { limit: number; offset: number }) {
    // Each filter is a part of an index, so that neither the page nor the count reads what it passes over.
    const filters: [string, string | number][] = []
    if (action !== undefined) filters.push(['action = ?', action])
    if (since !== undefined) filters.push(['at >= ?', since])
    if (until !== undefined) filters.push(['at < ?', until])
    const where = filters.length === 0 ? '' : `WHERE ${filters.map(([condition]) => condition).join(' AND ')}`
    const given = filters.map(([, value]) => value)
    const audit = this.db
      .query<HomeAuditEntry, (string | number)[]>(
        `SELECT id, at, actor, action, target, seq, hash FROM audit ${where} ORDER BY at DESC, id DESC LIMIT ? OFFSET ?`,
      )
      .all(...given, limit, offset)
    const { total } = this.db
      .query<{ total: number }, (string | number)[]>(
        `SELECT count(*) AS total FROM (SELECT 1 FROM audit ${where} LIMIT ?)`,
      )
      .get(...given, MOST_COUNTED + 1)!
    return { audit, ...counted(total) }
  }

  /** The log as what an export reads. */
  get source(): AuditSource<HomeSealed> {
    const { db } = this
    return {
      chains: async () => this.chains(),
      unsealed: async () => new Map([[this.name, this.unsealed]]),
      entries: async (after, most) =>
        db
          .query<HomeAuditEntry & Sealed, [number, number]>(
            `SELECT seq AS position, id, at, actor, action, target, seq, hash FROM audit
             WHERE seq > ? ORDER BY seq LIMIT ?`,
          )
          .all(after, most)
          .map(entry => ({ ...entry, chain: this.name })),
      before: async (_, position) =>
        db.query<Link, [number]>('SELECT seq, hash FROM audit WHERE seq <= ? ORDER BY seq DESC LIMIT 1').get(position),
    }
  }

  /** The name of the chain, which no other home has. */
  protected get name(): string {
    return `home:${this.instance ?? 'new'}`
  }

  /** The id of the home, which its first daemon makes. */
  protected get instance(): string | null {
    return this.db.query<{ value: string }, []>("SELECT value FROM meta WHERE key = 'instance'").get()?.value ?? null
  }

  protected get unsealed(): number {
    return this.db.query<{ count: number }, []>('SELECT count(*) AS count FROM audit WHERE seq IS NULL').get()!.count
  }

  protected chains(): (Chain & { position: number })[] {
    const rows = this.db
      .query<Link & { chain: string; anchor_seq: number; anchor_hash: string; anchor_at: number | null }, []>(
        'SELECT * FROM audit_chain',
      )
      .all()
    return rows.map(({ anchor_seq, anchor_hash, anchor_at, ...head }) => ({
      ...head,
      anchor: { seq: anchor_seq, hash: anchor_hash, at: anchor_at },
      position: head.seq,
    }))
  }
}

/** The log of the process that holds the home, which writes and seals it. */
export class Audit extends AuditLog {
  readonly #log: Pick<Log, 'warn'>
  #sealing: Timer | undefined

  constructor(db: Database, log: Pick<Log, 'warn'>) {
    super(db)
    this.#log = log
  }

  /** Writes an entry. The caller is in the transaction of the change, or does nothing else in it. */
  write(entry: NewEntry): void {
    insert(this.db, entry)
    this.#sealing ??= setTimeout(() => this.sealAll(), SEAL_MS).unref()
  }

  /** Does `work`, which changes rows, and writes the entry about its result in the same transaction. */
  during<T>(actor: string, action: string, work: () => T, target: (result: T) => string): T {
    return this.db
      .transaction(() => {
        const result = work()
        this.write({ actor, action, target: target(result) })
        return result
      })
      .immediate()
  }

  /** Seals the entries that are not sealed yet, also those of an earlier process. Never throws. */
  sealAll(): void {
    clearTimeout(this.#sealing)
    this.#sealing = undefined
    try {
      // The rest has its own turns of the event loop.
      if (this.instance === null || this.unsealed === 0) return
      if (this.#seal() === SEALED_AT_ONCE) this.#sealing = setTimeout(() => this.sealAll()).unref()
    } catch (error) {
      // The next entry, the chore of a daemon or the next start tries again.
      this.#log.warn('audit entries could not be sealed', { error: messageOf(error) })
    }
  }

  #seal(): number {
    const { db, name } = this
    return db
      .transaction(() => {
        const due = db
          .query<HomeAuditEntry, [number]>(
            'SELECT id, at, actor, action, target FROM audit WHERE seq IS NULL ORDER BY id LIMIT ?',
          )
          .all(SEALED_AT_ONCE)
        let { seq, hash }: Link =
          db.query<Link, [string]>('SELECT seq, hash FROM audit_chain WHERE chain = ?').get(name) ?? GENESIS
        const seal = db.query('UPDATE audit SET seq = ?, hash = ? WHERE id = ? AND seq IS NULL')
        for (const entry of due) {
          seq++
          hash = sealOf(hash, { ...entry, chain: name, seq })
          seal.run(seq, hash, entry.id)
        }
        db.query(
          `INSERT INTO audit_chain (chain, seq, hash, anchor_seq, anchor_hash) VALUES (?1, ?2, ?3, ?4, ?5)
           ON CONFLICT (chain) DO UPDATE SET seq = ?2, hash = ?3`,
        ).run(name, seq, hash, GENESIS.seq, GENESIS.hash)
        return due.length
      })
      .immediate()
  }

  /**
   * Deletes sealed entries that were recorded before `before` and have at most the id `lastId`, up to the first one that
   * was not. Returns how many.
   */
  deleteBefore(before: number, lastId: number): number {
    const { db, name } = this
    return db
      .transaction(() => {
        const oldest = db
          .query<Link & { id: number; at: number }, [number]>(
            'SELECT id, seq, hash, at FROM audit WHERE seq > 0 ORDER BY seq LIMIT ?',
          )
          .all(DELETED_AT_ONCE)
        const young = oldest.findIndex(({ at, id }) => at >= before || id > lastId)
        const last = oldest.at(young === -1 ? oldest.length - 1 : young - 1)
        if (young === 0 || !last) return 0
        db.query('UPDATE audit_chain SET anchor_seq = ?, anchor_hash = ?, anchor_at = ? WHERE chain = ?').run(
          last.seq,
          last.hash,
          last.at,
          name,
        )
        return db.query('DELETE FROM audit WHERE seq <= ?').run(last.seq).changes
      })
      .immediate()
  }

  /** Seals the entries that are not sealed yet, for the last time. */
  close(): void {
    if (this.#sealing) this.sealAll()
    clearTimeout(this.#sealing)
  }
}

function insert(db: Database, { actor, action, target }: NewEntry): void {
  db.query('INSERT INTO audit (at, actor, action, target) VALUES (?, ?, ?, ?)').run(Date.now(), actor, action, target)
}

/** The log of a home for reading, whether or not a process holds the home. Throws `not_found` where there is none. */
export async function readAudit(home: string): Promise<{ log: AuditLog } & Disposable> {
  if (!existsSync(databaseFile(home))) throw new CadreError('not_found', `nothing was recorded in ${home} yet`)
  const db = await readRunDatabase(home)
  return { log: new AuditLog(db), [Symbol.dispose]: () => db.close() }
}

/** Writes what a command did to the home itself, whether or not a process holds it. */
export async function recordInHome(home: string, entry: Omit<NewEntry, 'actor'>): Promise<void> {
  makeHome(home)
  const [file, migrations] = [databaseFile(home), await readMigrations(MIGRATIONS)]
  // Only the holder of the home makes its database, or migrates it.
  const lock = isAt(file, migrations.length) ? null : takeLock(home, 'audit')
  try {
    const db = openRunDatabase(file, migrations)
    try {
      insert(db, { actor: localName(), ...entry })
      new Audit(db, { warn: () => {} }).sealAll()
    } finally {
      db.close()
    }
  } catch (error) {
    if (!isDiskError(error)) throw error
    throw new CadreError('unavailable', `the disk of ${home} takes no more writes: free some space, then try again`)
  } finally {
    lock?.release()
  }
}

function isAt(file: string, version: number): boolean {
  if (!existsSync(file)) return false
  const db = openForReading(file)
  try {
    return versionOf(db) === version
  } finally {
    db.close()
  }
}
