// The backups that a hub makes of its SQLite database by itself (`CADRE_HUB_BACKUP`). Whether one is due is read from the
// names in the folder, so a hub that is restarted often neither makes more of them nor pushes out older ones.

import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isPostgres } from '../../../db/hub/store.ts'
import { A_DURATION, parseDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import { namesIn } from '../../files/names-in.ts'
import { thread } from '../../program/install-root.ts'
import { wholeNumber } from '../../whole-number.ts'
import type { Asked } from './backup-thread.ts'

const NAME = /^hub-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/
/** What a process that was killed has left, and SQLite's journal of it. */
const DRAFT = /^hub-\d{8}T\d{6}Z\.db\.[0-9a-f-]+\.draft(-journal)?$/
const LEAST_MS = 60_000
const MOST_KEPT = 100_000

export interface BackupOptions {
  folder: string
  /** The path of the database. */
  database: string
  everyMs: number
  /** How many are kept. */
  keep: number
}

interface Backup {
  name: string
  /** When it was begun, in epoch milliseconds. */
  at: number
}

export class Backups {
  readonly #options: BackupOptions
  #interrupt: (() => void) | null = null

  constructor(options: BackupOptions) {
    this.#options = options
  }

  /** The newest one: when it was begun, in epoch milliseconds, and its size. Null if there is none that can be seen. */
  newest(now: number): { at: number; bytes: number } | null {
    try {
      const last = this.#all().findLast(({ at }) => at <= now)
      return last ? { at: last.at, bytes: statSync(join(this.#options.folder, last.name)).size } : null
    } catch {
      // The chore says why.
      return null
    }
  }

  /** Makes one if the last is old enough, and removes the oldest. Throws why it could not be made; then all stay. */
  async makeIfDue(now: number): Promise<void> {
    const { folder, everyMs, keep } = this.#options
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const before = this.#all()
    // One of the future was made while the clock was ahead.
    if (before.some(({ at }) => at <= now && now - at < everyMs)) return
    this.#removeDrafts()
    await this.#make(join(folder, nameAt(now))).finally(() => this.#removeDrafts())
    const age = ({ at }: Backup) => (at <= now ? now - at : Number.POSITIVE_INFINITY)
    const oldest = this.#all()
      .sort((a, b) => age(a) - age(b))
      .slice(keep)
    for (const { name } of oldest) rmSync(join(folder, name), { force: true })
  }

  /** Ends the backup under way, of which nothing stays. */
  stop(): void {
    this.#interrupt?.()
  }

  /** Copies and checks the database in a thread of its own, because that takes long and would hold up every call. */
  async #make(file: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const failed = (why: string) => reject(new CadreError('unavailable', why))
    const worker = new Worker(thread('lib/hub/backups/backup-thread.ts'))
    worker.unref()
    worker.onmessage = ({ data }: MessageEvent<string | null>) => (data === null ? resolve() : failed(data))
    worker.onerror = ({ message }) => failed(message)
    this.#interrupt = () => failed('the backup was interrupted')
    worker.postMessage({ database: this.#options.database, file } satisfies Asked)
    try {
      await promise
    } finally {
      this.#interrupt = null
      worker.terminate()
    }
  }

  #removeDrafts(): void {
    const { folder } = this.#options
    for (const name of namesIn(folder)) if (DRAFT.test(name)) rmSync(join(folder, name), { force: true })
  }

  /** Those in the folder, the oldest first. */
  #all(): Backup[] {
    return namesIn(this.#options.folder).flatMap(name => {
      const found = NAME.exec(name)
      if (!found) return []
      const [year, month, day, hour, minute, second] = found.slice(1).map(Number) as [number, ...number[]]
      return { name, at: Date.UTC(year, month! - 1, day, hour, minute, second) }
    })
  }
}

/** `hub-20261128T174500Z.db` */
function nameAt(now: number): string {
  const [whole] = new Date(now).toISOString().split('.')
  return `hub-${whole!.replaceAll(/[-:]/g, '')}Z.db`
}

/** What `CADRE_HUB_BACKUP`, `…_EVERY` and `…_KEEP` say; null without the first. Throws `invalid_request`. */
export function backupsIn(env: Record<string, string | undefined>, database: string): Backups | null {
  if (!env.CADRE_HUB_BACKUP) return null
  if (isPostgres(database)) {
    throw new CadreError(
      'invalid_request',
      "CADRE_HUB_BACKUP is for a SQLite database, but this hub uses PostgreSQL: use PostgreSQL's own tools, such as pg_dump",
    )
  }
  const { CADRE_HUB_BACKUP_EVERY: every = '1h', CADRE_HUB_BACKUP_KEEP: kept = '24' } = env
  const everyMs = parseDuration(every)
  if (everyMs === null || everyMs < LEAST_MS) {
    throw new CadreError('invalid_request', `CADRE_HUB_BACKUP_EVERY: expected ${A_DURATION}, at least 1m, got ${every}`)
  }
  const keep = wholeNumber('CADRE_HUB_BACKUP_KEEP', kept, MOST_KEPT, 1)
  return new Backups({ folder: resolve(env.CADRE_HUB_BACKUP), database, everyMs, keep })
}
