// The reads of people that take long in a large home: searches, runs since a moment, pages far down, lists of very many
// groups, and what is counted of the runs of a team. A thread reads them (search-thread.ts), and makes checkpoints. It starts with the first order and ends when it has
// had nothing to do for a while.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CadreError, messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { thread } from '../../program/install-root.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import type { RunStats } from '../../wire/run-stats.ts'
import type { StatsFilter } from './counted-runs.ts'
import type { Found, SearchFilter } from './find.ts'
import { forgetChanges, type Kept, keptIn, notIndexed, offerRuns } from './search-index.ts'
import type { Answer, Order } from './search-thread.ts'

interface Parts {
  db: Database
  /** The file of `db`. */
  database: string
  /** The file of the index. */
  index: string
  log: Log
  /** Whether the engine is at work, for which the index waits. */
  isBusy(): boolean
}

const IDLE_MS = 10_000
/** A list that takes longer is answered with an error. */
const PATIENCE_MS = 30_000
/** So many changes a search looks at by itself without effort. While the engine works, the index waits for more. */
const FEW_CHANGES = 500
const MANY_CHANGES = 5_000
const BUSY_MS = 5_000
/** After a failure, such as a full disk. */
const FAILED_MS = 60_000

interface Waiting {
  resolve(answer: Answer): void
  reject(error: CadreError): void
}

/** Whether a list is read by the thread, however few groups it is of. The others read a few rows of an index. */
export const isLongRead = ({ search, since, offset, limit }: SearchFilter): boolean =>
  search !== undefined || since !== undefined || offset + limit > MOST_COUNTED

export class Reads {
  readonly #parts: Parts
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | null = null
  #ended = Promise.withResolvers<void>()
  #idle: Timer | undefined
  #calls = 0
  /** What is indexed on disk. */
  #kept: Kept | null
  #isFilling = false
  #isFilled = false
  #notBefore = 0
  #failure: string | null = null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#kept = existsSync(parts.index) ? keptIn(parts.db) : null
  }

  /** The runs of a list, newest first. Throws `unavailable`. */
  async list(filter: SearchFilter): Promise<Found> {
    const asked = this.#ask(id => ({ list: filter, id }))
    if (filter.search !== undefined) this.#fill()
    return inAnswer(await asked, 'found')
  }

  /** What is counted of the runs of a team. Throws `unavailable`. */
  async stats(filter: StatsFilter): Promise<RunStats> {
    return inAnswer(await this.#ask(id => ({ stats: filter, id })), 'stats')
  }

  /**
   * Copies what has been committed from the write-ahead log into the database. SQLite does so itself at every thousandth
   * page, in the middle of a commit (measured: up to 93 ms among a million runs). Whoever writes much that nobody waits for
   * lets the thread do it before. A failure is left to that next commit.
   */
  async checkpoint(): Promise<void> {
    await this.#ask(id => ({ checkpoint: true, id })).catch(() => {})
    // Bun hears a thread before it looks at timers and sockets. Without a turn for these, work that waits for a checkpoint
    // after each of its steps would hold all requests while the thread answers soon (measured: for 205 ms).
    await nextTurn()
  }

  /** Fills the index when enough has changed. Called again and again. */
  fillWhenDue(): void {
    const now = performance.now()
    if (this.#isFilling || now < this.#notBefore) return
    const changes = notIndexed(this.#parts.db, this.#kept)
    if (this.#kept && changes === 0) this.#isFilled = true
    const isBusy = this.#parts.isBusy()
    if (this.#isFilled && changes < (isBusy ? MANY_CHANGES : FEW_CHANGES)) return
    if (isBusy) this.#notBefore = now + BUSY_MS
    this.#fill()
  }

  /** Ends the thread. What it has not indexed is indexed later. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    const worker = this.#worker
    if (!worker) return
    this.#send({ end: true })
    this.#worker = null
    await Promise.race([this.#ended.promise, Bun.sleep(1_000)])
    worker.terminate()
  }

  #ask(orderOf: (id: number) => Order): Promise<Answer> {
    const id = ++this.#calls
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#waiting.set(id, { resolve, reject })
    this.#tell(orderOf(id))
    const timer = setTimeout(() => reject(unanswered(`within ${PATIENCE_MS / 1_000} s`)), PATIENCE_MS)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(id)
    })
  }

  #fill(): void {
    if (this.#isFilling || performance.now() < this.#notBefore - BUSY_MS) return
    this.#isFilling = true
    try {
      offerRuns(this.#parts.db)
    } catch (error) {
      return this.#failed(messageOf(error))
    }
    this.#tell({ fill: true })
  }

  #tell(order: Order): void {
    this.#worker ??= this.#start()
    clearTimeout(this.#idle)
    this.#send(order)
    this.#idle = setTimeout(() => this.#endIdle(), IDLE_MS)
  }

  #send(order: Order): void {
    this.#worker?.postMessage(order)
  }

  #start(): Worker {
    const worker = new Worker(thread('lib/run/search/search-thread.ts'))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#ended = { promise, resolve, reject }
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if ('ended' in data) {
        resolve()
        worker.terminate()
      } else this.#heard(data)
    }
    worker.onerror = ({ message }) => this.#lost(worker, messageIn(message))
    worker.addEventListener('close', () => this.#lost(worker, 'its thread has ended'))
    worker.postMessage({ open: { database: this.#parts.database, index: this.#parts.index } } satisfies Order)
    return worker
  }

  #heard(answer: Exclude<Answer, { ended: true }>): void {
    if ('error' in answer) this.#waiting.get(answer.id)?.reject(unanswered(answer.error))
    else if ('id' in answer) this.#waiting.get(answer.id)?.resolve(answer)
    else if ('failed' in answer) this.#failed(answer.failed)
    else {
      this.#isFilling = false
      this.#failure = null
      this.#isFilled = !answer.more
      if (answer.kept) {
        this.#kept = answer.kept
        this.#forget(answer.kept)
      }
      if (answer.more) this.fillWhenDue()
    }
  }

  /** The changes that are indexed on disk are forgotten, a part at a time. */
  #forget(kept: Kept): void {
    try {
      if (forgetChanges(this.#parts.db, kept)) setTimeout(() => this.#worker && this.#forget(kept), 10)
    } catch (error) {
      this.#failed(String(error))
    }
  }

  #failed(error: string): void {
    this.#isFilling = false
    this.#isFilled = false
    this.#notBefore = performance.now() + FAILED_MS
    if (this.#failure !== error) this.#parts.log.warn('the index of searches could not be filled', { error })
    this.#failure = error
  }

  #endIdle(): void {
    if (this.#isFilling || this.#waiting.size > 0) {
      this.#idle = setTimeout(() => this.#endIdle(), IDLE_MS)
      return
    }
    this.#send({ end: true })
    this.#worker = null
  }

  /** The next read starts another thread. */
  #lost(worker: Worker, error: string): void {
    if (worker !== this.#worker) return
    this.#worker = null
    worker.terminate()
    for (const { reject } of this.#waiting.values()) reject(unanswered(error))
    this.#failed(error)
  }
}

/** Bun gives the message of an error in a thread only between its source and its stack. */
const messageIn = (report: string): string =>
  report.split('\n').find(line => /^\w*Error: /.test(line)) ?? 'its thread has failed'

/** What an answer has under a name. The thread answers each order as it was asked. */
function inAnswer<K extends string>(answer: Answer, name: K): Extract<Answer, Record<K, unknown>>[K] {
  if (!has(answer, name)) throw unanswered('its thread answered something else')
  return answer[name]
}
const has = <K extends string>(answer: Answer, name: K): answer is Extract<Answer, Record<K, unknown>> => name in answer

const unanswered = (why: string) =>
  new CadreError('unavailable', `the runs could not be read: ${why}; ask again, or for fewer of them`)
