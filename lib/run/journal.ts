// Group commit: changes queue up while the event loop turns, then go into one durable transaction.
// A change is applied once; its promise settles only when it is on disk. One FULL commit a turn, not one a change,
// is what makes durability cheap (measured: 5,800 rows a second one by one, 127,000 in groups of 16).

import { type Database, SQLiteError } from 'bun:sqlite'
import { CadreError } from '../error.ts'
import { failpoint } from '../failpoint.ts'
import type { Log } from '../log.ts'

interface Pending {
  change(): unknown
  resolve(value: unknown): void
  reject(error: unknown): void
}

type Result = { value: unknown } | { refusal: CadreError }

export interface JournalHooks {
  /** Inside the transaction, before the first change of a group. */
  afterBegin(): void
  /** Inside the transaction, after the last change of a group. */
  beforeCommit(): void
  /** The group is durable: what waited for it may happen now. */
  afterCommit(): void
  /** The group was rolled back: memory is ahead of the database. Nothing can be written here; `afterBegin` is next. */
  afterRollback(): void
}

const DISK_CODES = ['SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_READONLY', 'SQLITE_CANTOPEN']
const isDiskError = (error: unknown): error is SQLiteError =>
  error instanceof SQLiteError && DISK_CODES.some(code => error.code?.startsWith(code))

export class Journal {
  #queue: Pending[] = []
  #scheduled = false
  #stalled: string | null = null
  #closed = false
  readonly #retryMs: number
  readonly #db: Database
  readonly #hooks: JournalHooks
  readonly #log: Log

  constructor(db: Database, hooks: JournalHooks, log: Log, retryMs = 1_000) {
    this.#db = db
    this.#hooks = hooks
    this.#log = log
    this.#retryMs = retryMs
  }

  /** Why nothing can be recorded at the moment (a full disk), or null. */
  get stalled(): string | null {
    return this.#stalled
  }

  /**
   * Queues a synchronous change. It may run more than once when its group is rolled back, so it must derive all that it
   * does from the database and from what it was given. Rejects when the change throws; the rest of its group stands.
   */
  write<T>(change: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ change, resolve: resolve as (value: unknown) => void, reject })
      if (!this.#scheduled && !this.#stalled) {
        this.#scheduled = true
        setImmediate(() => this.flush())
      }
    })
  }

  /** Commits what is queued. */
  flush(): void {
    this.#scheduled = false
    if (this.#closed || this.#queue.length === 0) return
    const group = this.#queue
    this.#queue = []
    let results: Result[]
    try {
      results = this.#commit(group)
    } catch (error) {
      this.#hooks.afterRollback()
      if (isDiskError(error)) this.#stall(group, error)
      else if (group.length === 1) group[0]!.reject(error)
      else this.#oneByOne(group)
      return
    }
    this.#answer(group, results)
  }

  close(): void {
    this.flush()
    this.#closed = true
  }

  #commit(group: Pending[]): Result[] {
    const results: Result[] = []
    this.#db
      .transaction(() => {
        this.#hooks.afterBegin()
        for (const { change } of group) results.push(this.#apply(change))
        this.#hooks.beforeCommit()
        failpoint()
      })
      .immediate()
    failpoint()
    return results
  }

  /**
   * A refusal that came before anything was changed (a run that has ended cannot be cancelled …) is an answer, not a
   * reason to roll back: with thousands of open runs, to read them all anew takes a tenth of a second.
   */
  #apply(change: () => unknown): Result {
    const before = this.#changes()
    try {
      return { value: change() }
    } catch (error) {
      if (error instanceof CadreError && error.code !== 'internal' && this.#changes() === before)
        return { refusal: error }
      throw error
    }
  }

  #changes(): number {
    return this.#db.query<{ n: number }, []>('SELECT total_changes() AS n').get()!.n
  }

  /** Outside of what can be rolled back: the group is durable, whatever happens now. */
  #answer(group: Pending[], results: Result[]): void {
    this.#hooks.afterCommit()
    for (const [index, { resolve, reject }] of group.entries()) {
      const result = results[index]!
      if ('refusal' in result) reject(result.refusal)
      else resolve(result.value)
    }
  }

  /** Finds the change that throws, so that it alone is refused. */
  #oneByOne(group: Pending[]): void {
    for (const [index, pending] of group.entries()) {
      let results: Result[]
      try {
        results = this.#commit([pending])
      } catch (error) {
        this.#hooks.afterRollback()
        if (isDiskError(error)) return this.#stall(group.slice(index), error)
        pending.reject(error)
        continue
      }
      this.#answer([pending], results)
    }
  }

  /** Nothing is lost while the disk is full: the changes stay queued, in order, until it takes them. */
  #stall(group: Pending[], error: SQLiteError): void {
    this.#queue = [...group, ...this.#queue]
    if (!this.#stalled) this.#log.error('cannot write the run database; waiting for space', { error: error.message })
    this.#stalled = error.message
    setTimeout(() => {
      if (this.#closed) return
      this.#stalled = null
      this.flush()
      if (!this.#stalled) this.#log.info('the run database takes writes again')
    }, this.#retryMs)
  }
}
