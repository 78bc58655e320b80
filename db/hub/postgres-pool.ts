// The hub's connections to PostgreSQL. Each one is a client of Bun with a single connection, because only a whole client
// can be closed at once: when the machine of the database vanishes, or its address answers elsewhere, open connections stay
// silent for ever. A statement has a deadline, which the server keeps (`statement_timeout`). Where even that gives no
// answer, the pool closes the connection a second later, and with it all that are idle, because their server is the same.

import { CadreError } from '../../lib/error.ts'

export interface PoolOptions {
  /** How many connections there are at most. */
  size: number
  /** How long a statement may take, in milliseconds; 0: as long as it wants. */
  statementMs: number
}

/** What the server lets a client say. Both limits are the server's own: the client adds its patience. */
const PATIENCE_MS = 1_000
const TICK_MS = 500
const CONNECT_SECONDS = 3
/** How long statements may still take when the hub stops. */
const CLOSE_SECONDS = 5
/** After a connection could not be made, none is tried for this long, and calls are refused at once. */
const REFUSE_MS = 500
/** How many calls wait for a connection, and how long each one does. */
const MOST_WAITING = 2_000
const WAIT_MS = 5_000
/** An idle connection is asked for a sign of life this often, and none is older than this. */
const PING_MS = 30_000
const LIFETIME_MS = 30 * 60_000
/** How many reads share a connection while all are in use: over a distance most of the time passes on the way. */
const MOST_READS = 16

/**
 * PostgreSQL may keep the plan that it made for a statement when a table was small. Without this it would go on to read
 * the whole table when that has grown. It then takes what it cannot avoid for very costly, and would compile it.
 */
const PLANNING = ['SET enable_seqscan = off', 'SET jit = off']

interface Connection {
  sql: Bun.SQL
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

export interface PoolFigures {
  busy: number
  idle: number
  /** Calls that wait for a connection. */
  waiting: number
}

/** A connection as statements are given to it. */
export type Statements = Pick<Bun.TransactionSQL, 'unsafe'>

interface Waiting extends PromiseWithResolvers<Connection> {
  /** In ticks of the pool. */
  since: number
  /** Whether others may use the connection too. */
  isRead: boolean
}

export class PostgresPool {
  readonly #url: string
  readonly #options: PoolOptions
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #reading = new Set<Connection>()
  readonly #waiting = new Set<Waiting>()
  readonly #timer: Timer
  #ticks = 0
  #opening = 0
  #refusedUntil = 0
  #refusal: unknown = null
  #isClosed = false
  #isFull = false

  constructor(url: string, options: PoolOptions) {
    this.#url = url
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  /** Whether the last transaction failed because the server's disk is full. */
  get isFull(): boolean {
    return this.#isFull
  }

  get figures(): PoolFigures {
    return { busy: this.#all.size - this.#idle.length, idle: this.#idle.length, waiting: this.#waiting.size }
  }

  /**
   * Gives a connection to `work` alone. Throws `unavailable` when there is none in time, and when the database does not
   * answer.
   */
  async use<T>(work: (sql: Bun.SQL, watched: (sql: Statements) => Statements) => Promise<T>): Promise<T> {
    const connection = await this.#acquire(false)
    const watched = (sql: Statements): Statements => ({
      unsafe: (text, values) => {
        connection.silent = 0
        return sql.unsafe(text, values)
      },
    })
    try {
      const result = await work(connection.sql, watched)
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

  async #read<T>(send: (connection: Connection) => PromiseLike<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#acquire(true)
      try {
        return await send(connection)
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
    this.#refuse(new CadreError('unavailable', 'the hub is stopping; try again', { retryAfter: 1 }))
    // Those that are silent are still closed by their deadline.
    await Promise.allSettled([...this.#all].map(({ sql }) => sql.close({ timeout: CLOSE_SECONDS })))
    clearInterval(this.#timer)
  }

  #acquire(isRead: boolean): Connection | Promise<Connection> {
    const idle = this.#idle.pop()
    if (idle) return this.#given(idle, isRead)
    if (this.#isClosed) throw new CadreError('unavailable', 'the hub is stopping; try again', { retryAfter: 1 })
    const mayOpen = this.#mayOpen
    if (this.#isRefused && !this.#isCrowded) throw this.#refusal
    // Whoever needs a connection alone, and waits, would wait for ever for one that always takes another read.
    if (isRead && !mayOpen && this.#waiting.size === 0) {
      const shared = this.#leastRead()
      if (shared) return this.#given(shared, true)
    }
    if (this.#waiting.size >= MOST_WAITING) throw busy()
    const waiting: Waiting = { ...Promise.withResolvers<Connection>(), since: this.#ticks, isRead }
    this.#waiting.add(waiting)
    if (mayOpen) void this.#open()
    return waiting.promise
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

  #leastRead(): Connection | null {
    let least: Connection | null = null
    for (const each of this.#reading) {
      if (!each.isGone && each.reads < (least?.reads ?? MOST_READS)) least = each
    }
    return least
  }

  #given(connection: Connection, isRead: boolean): Connection {
    if (connection.reads === 0) connection.silent = 0
    if (isRead && connection.reads++ === 0) this.#reading.add(connection)
    return connection
  }

  /** Opens a connection and gives it to whoever waits. */
  async #open(): Promise<void> {
    this.#opening++
    try {
      const connection = await this.#connect()
      this.#all.add(connection)
      this.#release(connection)
    } catch (error) {
      this.#refusedUntil = performance.now() + REFUSE_MS
      this.#refusal = refusalOf(error) ?? away(error)
      if (!this.#isCrowded) this.#refuse(this.#refusal)
    } finally {
      this.#opening--
    }
  }

  async #connect(): Promise<Connection> {
    const connection: Connection = {
      sql: new Bun.SQL(this.#url, {
        max: 1,
        connectionTimeout: CONNECT_SECONDS,
        onclose: () => {
          connection.isGone = true
          if (this.#idle.includes(connection)) this.#drop(connection)
        },
      }),
      ...{ bornAt: performance.now(), usedAt: performance.now(), silent: 0, reads: 0, isGone: false, isLate: false },
    }
    const { sql } = connection
    const deadline = setTimeout(
      () => void sql.close({ timeout: 0 }).catch(() => {}),
      CONNECT_SECONDS * 1_000 + PATIENCE_MS,
    )
    try {
      const { statementMs } = this.#options
      await sql.unsafe([...PLANNING, `SET statement_timeout = ${statementMs}`].join('; ')).simple()
      return connection
    } catch (error) {
      void sql.close({ timeout: 0 }).catch(() => {})
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
      connection.usedAt = performance.now()
      for (const waiting of this.#waiting) {
        const isFit = waiting.isRead ? connection.reads < MOST_READS : connection.reads === 0
        if (!isFit) return
        this.#waiting.delete(waiting)
        waiting.resolve(this.#given(connection, waiting.isRead))
        if (!waiting.isRead) return
      }
      if (connection.reads === 0) this.#idle.push(connection)
    }
    if (this.#waiting.size > 0 && this.#mayOpen) void this.#open()
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    void connection.sql.close({ timeout: 0 }).catch(() => {})
  }

  #refuse(error: unknown): void {
    for (const waiting of this.#waiting) waiting.reject(error)
    this.#waiting.clear()
  }

  #tick(): void {
    this.#ticks++
    for (const waiting of this.#waiting) {
      if ((this.#ticks - waiting.since) * TICK_MS <= WAIT_MS) break
      this.#waiting.delete(waiting)
      waiting.reject(busy())
    }
    if (this.#waiting.size > this.#opening && this.#mayOpen) void this.#open()
    const now = performance.now()
    const idle = new Set(this.#idle)
    const { statementMs } = this.#options
    for (const connection of this.#all) {
      if (!idle.has(connection)) {
        connection.silent++
        if (statementMs === 0 || connection.silent * TICK_MS <= statementMs + PATIENCE_MS) continue
        connection.isLate = connection.isGone = true
        void connection.sql.close({ timeout: 0 }).catch(() => {})
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

/** What Drizzle and the hub use of a query of Bun. */
interface Query extends PromiseLike<unknown> {
  values(): Promise<unknown>
}

const asStatements = (unsafe: (text: string, values?: unknown[]) => Query): Statements =>
  // A query of Bun has more, which nobody here uses.
  ({ unsafe }) as unknown as Statements

const busy = () =>
  new CadreError('unavailable', 'the hub has more to do than its database can; try again', { retryAfter: 1 })

const tooLate = (cause: unknown) =>
  new CadreError('unavailable', 'the database did not answer in time; try again', { cause, retryAfter: 1 })

const away = (cause: unknown) =>
  new CadreError('unavailable', 'the database does not answer now; try again', { cause, retryAfter: 1 })

/**
 * What PostgreSQL says when it is well and does not do it, for people: the deadline of a statement, a server that takes no
 * writes or no connections, or not those of this hub (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
const REFUSALS: Readonly<Record<string, string>> = {
  '57014': 'the database did not answer in time; try again',
  '25006': 'the database takes no writes now: it is read-only, as a standby is; reads work',
  '53100': 'the disk of the database is full: free some space there; reads work',
  '53200': 'the database has no memory left; try again',
  '53300': 'the database takes no more connections; try again',
  '28000': 'the database does not let the user of the hub in: correct CADRE_HUB_DATABASE, or what the database allows',
  '28P01': 'the database refuses the password of the hub: correct CADRE_HUB_DATABASE, and restart the hub',
  '3D000': 'the database of the hub is not there now; try again',
}

function refusalOf(error: unknown): CadreError | null {
  const [state] = codesOf(error).filter(code => code in REFUSALS)
  return state === undefined ? null : new CadreError('unavailable', REFUSALS[state]!, { cause: error, retryAfter: 1 })
}

/**
 * Whether a connection has ended or can no longer be used, by Bun's code or by PostgreSQL's: statements prepared before a
 * table was changed work again on another connection.
 */
export function isLost(thrown: unknown): boolean {
  return codesOf(thrown).some(code => /^(ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)\w*|08\w{3}|57P\w{2})$/.test(code))
}

/** The codes of an error and of its causes. PostgreSQL's own is in `errno`. */
function codesOf(thrown: unknown): string[] {
  const codes: string[] = []
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const { code, errno } = error as { code?: unknown; errno?: unknown }
    codes.push(String(errno), String(code))
    // "cached plan must not change result type", which has no code of its own.
    if (String(errno) === '0A000' && error.message.includes('cached plan')) codes.push('08000')
  }
  return codes
}
