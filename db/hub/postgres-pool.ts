// The hub's connections to PostgreSQL. Each one is a client of Bun with a single connection, because only a whole client
// can be closed at once: when the machine of the database vanishes, or its address answers elsewhere, open connections stay
// silent for ever. A statement has a deadline, which the server keeps (`statement_timeout`). Where even that gives no
// answer, the pool closes the connection a second later, and with it all that are idle, because their server is the same.

import { CadreError } from '../../lib/error.ts'
import { away, codesOf, isLost, refusalOf, tooLate } from './postgres-refusals.ts'
import { type QueueFigures, WaitingCalls } from './waiting-calls.ts'

export interface PoolOptions {
  /** How many connections there are at most. */
  size: number
  /** How long a statement may take, in milliseconds; 0: as long as it wants. */
  statementMs: number
  /** Whether connections have no sessions: nothing is set but for a transaction, and no statement is prepared. */
  isPooled?: boolean
  /** How many calls wait for a connection at most, and for how long; all others are refused. */
  mostWaiting?: number
  waitMs?: number
}

/** What the server lets a client say. Both limits are the server's own: the client adds its patience. */
const PATIENCE_MS = 1_000
const TICK_MS = 500
const CONNECT_SECONDS = 3
/** How long statements may still take when the hub stops. */
const CLOSE_SECONDS = 5
/** After a connection could not be made, none is tried for this long, and calls are refused at once. */
const REFUSE_MS = 500
const MOST_WAITING = 2_000
const WAIT_MS = 5_000
/** When no connection has had an answer for this long, it is the database that calls wait for, and not each other. */
const SILENT_MS = 2_000
/** An idle connection is asked for a sign of life this often, and none is older than this. */
const PING_MS = 30_000
const LIFETIME_MS = 30 * 60_000
/** How many reads share a connection while all are in use: over a distance most of the time passes on the way. */
const MOST_READS = 16
/** The part of the connections that reads may keep to themselves. */
const READ_SHARE = 0.2

/**
 * PostgreSQL may keep the plan that it made for a statement when a table was small. Without this it would go on to read
 * the whole table when that has grown. It then takes what it cannot avoid for very costly, and would compile it. Where no
 * statement is prepared, no plan is kept.
 */
export const PLANNING = 'SET enable_seqscan = off; SET jit = off'

export interface Connection {
  /** All statements go to its one connection: where that ends, they fail, and none is sent to another one. */
  sql: Bun.ReservedSQL
  /** The forms of statements that were prepared on it. */
  known: Set<string>
  client: Bun.SQL
  bornAt: number
  usedAt: number
  /** The ticks since it was last given a statement, or has answered one. They stand still while this process does. */
  silent: number
  /** How many reads are on their way, one behind the other. While it has any, it has nothing else. */
  reads: number
  /** Whether it takes no more work, because it has ended or is old. */
  isGone: boolean
  /** Whether the pool closed it because no answer came. */
  isLate: boolean
}

export interface PoolFigures extends QueueFigures {
  busy: number
  idle: number
}

/** A connection as statements are given to it. */
export type Statements = Pick<Bun.TransactionSQL, 'unsafe'>

export class PostgresPool {
  readonly #url: string
  readonly #options: PoolOptions
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #reading = new Set<Connection>()
  readonly #waiting: WaitingCalls<Connection>
  readonly #timer: Timer
  #opening = 0
  /** When the server last answered. */
  #heardAt = 0
  #refusedUntil = 0
  /** What callers are refused with until then; null when it is no news. */
  #refusal: unknown = null
  #isClosed = false
  #isFull = false

  constructor(url: string, options: PoolOptions) {
    this.#url = url
    this.#options = options
    const { mostWaiting: most = MOST_WAITING, waitMs = WAIT_MS } = options
    // Silence is told as such, although calls wait for each other.
    const reason = () => (this.#isSilent ? tooLate() : null)
    this.#waiting = new WaitingCalls({ most, ticks: waitMs / TICK_MS, reason })
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  /** Whether the last transaction failed because the server's disk is full. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** What the statements of a transaction are under, where no session has it; else null. */
  get limits(): string | null {
    const { isPooled = false, statementMs } = this.#options
    return isPooled ? `SET LOCAL statement_timeout = ${statementMs}` : null
  }

  get figures(): PoolFigures {
    const idle = this.#idle.length
    return { busy: this.#all.size - idle, idle, ...this.#waiting.figures }
  }

  /**
   * Gives a connection to `work` alone. Throws `unavailable` when there is none in time, and when the database does not
   * answer.
   */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#acquire(false)
    try {
      const result = await work(connection)
      this.#isFull = false
      return result
    } catch (error) {
      throw this.#failed(connection, error)
    } finally {
      this.#release(connection)
    }
  }

  /** A statement by itself, sent when it is waited for. It may be sent twice when a connection ends, so it only reads. */
  readonly reads: Statements = asStatements((text, values) => ({
    // biome-ignore lint/suspicious/noThenProperty: a query of Bun is sent when it is waited for.
    then: (...then) => this.#read(({ sql }) => sql.unsafe(text, values)).then(...then),
    values: () => this.#read(({ sql }) => sql.unsafe(text, values).values()),
  }))

  /** Without a session, only a transaction has a deadline that the server keeps, so a read is one. */
  async #readAlone<T>(connection: Connection, send: (connection: Connection) => PromiseLike<T>): Promise<T> {
    try {
      await connection.sql.unsafe(`BEGIN; ${this.limits}`).simple()
      return await send(connection)
    } finally {
      if (!connection.isGone) this.#endBehind(connection)
    }
  }

  /** Ends the transaction of a read. Nobody waits for that, but the connection is free only then. */
  #endBehind(connection: Connection): void {
    this.#given(connection, true)
    void connection.sql
      .unsafe('COMMIT')
      .simple()
      .catch(() => {
        connection.isGone = true
      })
      .finally(() => this.#release(connection))
  }

  async #read<T>(send: (connection: Connection) => PromiseLike<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#acquire(true)
      try {
        return await (this.#options.isPooled ? this.#readAlone(connection, send) : send(connection))
      } catch (error) {
        const found = this.#failed(connection, error)
        if (attempt > 1 || this.#isClosed || !connection.isGone) throw found
      } finally {
        this.#release(connection)
      }
    }
  }

  /** The error of a statement as it is thrown. Notes when its connection is of no more use. */
  #failed(connection: Connection, error: unknown): unknown {
    if (isLost(error)) connection.isGone = true
    if (codesOf(error).includes('53100')) this.#isFull = true
    return connection.isLate ? tooLate(error) : (refusalOf(error) ?? (isLost(error) ? away(error) : error))
  }

  /** Takes no more work, and closes the connections as they become free. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#waiting.refuse(new CadreError('unavailable', 'the hub is stopping; try again', { retryAfter: 1 }))
    // Those that are silent are still closed by their deadline.
    await Promise.allSettled([...this.#all].map(({ client }) => client.close({ timeout: CLOSE_SECONDS })))
    clearInterval(this.#timer)
  }

  #acquire(isRead: boolean): Connection | Promise<Connection> {
    const idle = this.#idle.pop()
    if (idle) return this.#given(idle, isRead)
    if (this.#isClosed) throw new CadreError('unavailable', 'the hub is stopping; try again', { retryAfter: 1 })
    const mayOpen = this.#mayOpen
    if (this.#isRefused && this.#refusal !== null && !this.#isCrowded) throw this.#refusal
    if (isRead && !mayOpen && (this.#waiting.size === 0 || this.#isForReads)) {
      const shared = this.#leastRead()
      if (shared) return this.#given(shared, true)
    }
    const given = this.#waiting.add(isRead)
    if (mayOpen) void this.#open()
    return given
  }

  get #mostReads(): number {
    return this.#options.isPooled ? 1 : MOST_READS
  }

  get #mayOpen(): boolean {
    return this.#all.size + this.#opening < this.#options.size && !this.#isRefused
  }

  get #isRefused(): boolean {
    return performance.now() < this.#refusedUntil
  }

  /** Whether the server takes no further connections, while those that are open work. */
  get #isCrowded(): boolean {
    return this.#all.size > 0 && codesOf(this.#refusal).includes('53300')
  }

  /**
   * Whether the connections that reads share take further ones while calls wait that need one alone, and would wait for ever
   * for these. A fifth of all do, so that over a distance people need not wait for the transactions of daemons.
   */
  get #isForReads(): boolean {
    return this.#reading.size <= Math.floor(this.#options.size * READ_SHARE)
  }

  #leastRead(): Connection | null {
    let least: Connection | null = null
    for (const each of this.#reading) {
      if (!each.isGone && each.reads < (least?.reads ?? this.#mostReads)) least = each
    }
    return least
  }

  #given(connection: Connection, isRead: boolean): Connection {
    if (connection.reads === 0) connection.silent = 0
    if (isRead && connection.reads++ === 0) this.#reading.add(connection)
    return connection
  }

  #openForWaiting(): void {
    if (this.#waiting.size > this.#opening && this.#mayOpen) void this.#open()
  }

  /** Opens a connection and gives it to whoever waits. */
  async #open(): Promise<void> {
    this.#opening++
    const begunAt = performance.now()
    try {
      const connection = await this.#connect()
      this.#all.add(connection)
      this.#release(connection)
    } catch (error) {
      this.#refusedUntil = performance.now() + REFUSE_MS
      const said = refusalOf(error)
      // Silence says nothing about a server that has answered others since: a network may have lost what it was sent.
      this.#refusal = said ?? (this.#heardAt > begunAt ? null : away(error))
      if (this.#refusal !== null && !this.#isCrowded) this.#waiting.refuse(this.#refusal)
    } finally {
      this.#opening--
    }
  }

  async #connect(): Promise<Connection> {
    let connection: Connection | null = null
    let isClosed = false
    const client = new Bun.SQL(this.#url, {
      max: 1,
      connectionTimeout: CONNECT_SECONDS,
      prepare: !this.#options.isPooled,
      onclose: () => {
        isClosed = true
        if (!connection) return
        connection.isGone = true
        if (this.#idle.includes(connection)) this.#drop(connection)
      },
    })
    const deadline = setTimeout(
      () => void client.close({ timeout: 0 }).catch(() => {}),
      CONNECT_SECONDS * 1_000 + PATIENCE_MS,
    )
    try {
      const { statementMs, isPooled } = this.#options
      const session = isPooled ? 'SELECT 1' : `${PLANNING}; SET statement_timeout = ${statementMs}`
      const sql = await client.reserve()
      await sql.unsafe(session).simple()
      const now = performance.now()
      const idle = { bornAt: now, usedAt: now, silent: 0, reads: 0 }
      connection = { sql, client, known: new Set(), ...idle, isGone: isClosed, isLate: false }
      return connection
    } catch (error) {
      void client.close({ timeout: 0 }).catch(() => {})
      throw error
    } finally {
      clearTimeout(deadline)
    }
  }

  #release(connection: Connection): void {
    connection.silent = 0
    if (connection.reads > 0 && --connection.reads === 0) this.#reading.delete(connection)
    if (performance.now() - connection.bornAt > LIFETIME_MS) connection.isGone = true
    if (connection.isGone || this.#isClosed) {
      if (connection.reads === 0) this.#drop(connection)
    } else {
      connection.usedAt = this.#heardAt = performance.now()
      if (!this.#giveToWaiting(connection)) this.#idle.push(connection)
    }
    this.#openForWaiting()
  }

  /** Gives a connection to one call that needs it alone, or to as many reads as share it. Returns whether it is in use. */
  #giveToWaiting(connection: Connection): boolean {
    let isAlone = false
    this.#waiting.give(isRead => {
      if (isAlone) return undefined
      const isFit = isRead ? connection.reads < this.#mostReads : connection.reads === 0
      // Calls that need one alone wait on while reads have their share.
      if (!isFit) return !isRead && this.#isForReads ? null : undefined
      isAlone = !isRead
      return this.#given(connection, isRead)
    })
    return isAlone || connection.reads > 0
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    void connection.client.close({ timeout: 0 }).catch(() => {})
  }

  get #isSilent(): boolean {
    const isLong = performance.now() - this.#heardAt >= SILENT_MS
    return isLong && [...this.#all].every(({ silent }) => silent * TICK_MS >= SILENT_MS)
  }

  #tick(): void {
    this.#waiting.tick()
    this.#openForWaiting()
    const now = performance.now()
    const idle = new Set(this.#idle)
    const { statementMs } = this.#options
    for (const connection of this.#all) {
      if (!idle.has(connection)) {
        connection.silent++
        if (statementMs === 0 || connection.silent * TICK_MS <= statementMs + PATIENCE_MS) continue
        connection.isLate = connection.isGone = true
        void connection.client.close({ timeout: 0 }).catch(() => {})
        for (const other of [...this.#idle]) this.#drop(other)
      } else if (now - connection.usedAt > PING_MS) {
        this.#idle.splice(this.#idle.indexOf(connection), 1)
        this.#given(connection, false)
        void connection.sql
          .unsafe('SELECT 1')
          .catch(() => {
            connection.isGone = true
          })
          .finally(() => this.#release(connection))
      }
    }
  }
}

/** A query of Bun, which is sent when it is waited for or executed. */
export interface Query<T = unknown> extends PromiseLike<T> {
  execute(): Promise<T>
}

/** What Drizzle and the hub use of one. */
interface Asked extends PromiseLike<unknown> {
  values(): Promise<unknown>
  execute?(): Promise<unknown>
}

export const asStatements = (unsafe: (text: string, values?: unknown[]) => Asked): Statements =>
  // A query of Bun has more, which nobody here uses.
  ({ unsafe }) as unknown as Statements
