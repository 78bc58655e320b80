// Group commit for SQLite: writes that wait at the same time share one transaction, because the sync of a commit takes
// longer than most writes. Each write is a savepoint of its own, so that one that throws undoes only itself. Nobody is
// answered before the commit.

import type { Database } from 'bun:sqlite'
import { CadreError } from '../../lib/error.ts'

/** How long a group takes further writes. */
const GROUP_MS = 20

interface Waiting {
  work(): Promise<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

export class GroupCommit {
  readonly #db: Database
  readonly #beforeCommit: () => void
  readonly #onCommit: () => void
  #waiting: Waiting[] = []
  #working: Promise<void> | null = null
  #closed = false

  /**
   * `beforeCommit` is called in each transaction as the last thing, and `onCommit` after each commit, before anybody is
   * answered.
   */
  constructor(db: Database, onCommit: () => void, beforeCommit = () => {}) {
    this.#db = db
    this.#beforeCommit = beforeCommit
    this.#onCommit = onCommit
  }

  /**
   * Runs `work` in a transaction, after all that was given before it. It may be run a second time, when the transaction
   * that it shared was lost because of another write. Rejects with `unavailable` after `close`.
   */
  write<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new CadreError('unavailable', 'the hub is stopping; try again'))
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, resolve: resolve as (result: unknown) => void, reject })
      this.#working ??= this.#drain()
    })
  }

  /** Takes no more writes, and resolves when those that wait are done. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#working) await this.#working
  }

  async #drain(): Promise<void> {
    // What arrived in this turn of the event loop comes into the first group.
    await new Promise<void>(resolve => setImmediate(resolve))
    for (let first = this.#waiting.shift(); first; first = this.#waiting.shift()) {
      const group = [first]
      const answers = await this.#commit(group)
      if (answers) for (const answer of answers) answer()
      else for (const alone of group) await this.#commitAlone(alone)
    }
    this.#working = null
  }

  /** Applies `group`, which grows while there is time, and commits. Returns the answers, or null when all is undone. */
  async #commit(group: Waiting[]): Promise<(() => void)[] | null> {
    const until = performance.now() + GROUP_MS
    const answers: (() => void)[] = []
    try {
      this.#db.query('BEGIN IMMEDIATE').run()
      for (const each of group) {
        answers.push(await this.#apply(each))
        const next = performance.now() < until && this.#waiting.shift()
        if (next) group.push(next)
      }
      this.#beforeCommit()
      this.#db.query('COMMIT').run()
    } catch {
      if (this.#db.inTransaction) this.#db.run('ROLLBACK')
      return null
    }
    this.#onCommit()
    return answers
  }

  /** Applies one write. Throws when the whole transaction is lost, as on a full disk. */
  async #apply({ work, resolve, reject }: Waiting): Promise<() => void> {
    this.#db.query('SAVEPOINT one').run()
    try {
      const result = await work()
      this.#db.query('RELEASE one').run()
      return () => resolve(result)
    } catch (error) {
      if (!this.#db.inTransaction) throw error
      this.#db.run('ROLLBACK TO one')
      this.#db.query('RELEASE one').run()
      return () => reject(error)
    }
  }

  async #commitAlone({ work, resolve, reject }: Waiting): Promise<void> {
    let result: unknown
    try {
      this.#db.query('BEGIN IMMEDIATE').run()
      result = await work()
      this.#beforeCommit()
      this.#db.query('COMMIT').run()
    } catch (error) {
      if (this.#db.inTransaction) this.#db.run('ROLLBACK')
      return reject(error)
    }
    this.#onCommit()
    resolve(result)
  }
}
