// A transaction of PostgreSQL in as few round trips as its work allows, because over a distance nothing else takes time.
// BEGIN goes with the first statements, and COMMIT with the last. A statement that changes rows and returns none is not
// waited for: the ones after it follow at once, and when it fails, PostgreSQL refuses them and the COMMIT.

import { asStatements, type Connection, type Query, type Statements } from './postgres-pool.ts'
import { sqlState } from './store.ts'

export type Level = 'serializable' | 'read committed'

/** Bun sends a statement of a template together with others, and one that is given as text without values alone. */
const BEGIN: Record<Level, (sql: Bun.SQL) => Query> = {
  serializable: sql => sql`BEGIN ISOLATION LEVEL SERIALIZABLE`,
  'read committed': sql => sql`BEGIN ISOLATION LEVEL READ COMMITTED`,
}

/** What may not be sent before it is known that the transaction has begun, and is not waited for if it returns nothing. */
const CHANGES = /^\s*(insert|update|delete)\s/i
const RETURNS = /\sreturning\s/i

/** The SQLSTATE of a statement that was refused because one before it has failed. */
const ABORTED = '25P02'

/**
 * Runs `work` in a transaction on a connection that nobody else uses. `onCommit` is called when it is about to be committed.
 * `limits`: what its statements are under, where no session has it. Such a connection prepares nothing, and its statements
 * are sent one by one.
 */
export async function transact<T>(
  connection: Connection,
  level: Level,
  limits: string | null,
  work: (statements: Statements) => Promise<T>,
  onCommit: () => void,
): Promise<T> {
  const { sql } = connection
  /** The replies that nobody has waited for yet. */
  const open: Promise<unknown>[] = []
  let failure: unknown = null
  let isOver = false
  let queue: Promise<unknown> = Promise.resolve()
  const send = async <R>(form: string, query: Query<R>): Promise<R> => {
    const { promise: reply, resolve, reject } = Promise.withResolvers<R>()
    queue = queue.then(() => {
      connection.silent = 0
      const sent = query.execute()
      sent.then(resolve, reject)
      if (limits === null && connection.known.has(form)) return
      // Bun prepares a statement of a new form first, and sends others meanwhile that come after it.
      return sent.then(
        () => connection.known.add(form),
        () => {},
      )
    })
    try {
      return await reply
    } catch (error) {
      failure ??= error
      // Of a statement that was refused because of another one, the error of that one says why.
      throw sqlState(error) === ABORTED ? failure : error
    } finally {
      connection.silent = 0
    }
  }
  const begun = send(`BEGIN ${level}`, BEGIN[level](sql))
  begun.catch(() => {})
  if (limits !== null) send(limits, sql.unsafe(limits)).catch(() => {})
  const ask = async (text: string, values: unknown[], query: Query): Promise<unknown> => {
    if (isOver) throw late()
    const form = formOf(text, values)
    if (!CHANGES.test(text)) return send(form, query)
    await begun
    if (isOver) throw late()
    const reply = send(form, query)
    if (RETURNS.test(text)) return reply
    open.push(reply.catch(() => {}))
    return []
  }
  const statements = asStatements((text, values = []) => ({
    // biome-ignore lint/suspicious/noThenProperty: a query of Bun is sent when it is waited for.
    then: (...then) => ask(text, values, sql.unsafe(text, values)).then(...then),
    values: () => ask(text, values, sql.unsafe(text, values).values()),
    execute: () => send(formOf(text, values), sql.unsafe(text, values)),
  }))
  try {
    const result = await work(statements)
    await begun
    isOver = true
    onCommit()
    await send('COMMIT', sql`COMMIT`)
    await Promise.all(open)
    if (failure !== null) throw failure
    return result
  } catch (error) {
    isOver = true
    // Whatever has become of it, the next one begins outside of it.
    await send('ROLLBACK', sql`ROLLBACK`).catch(() => {
      connection.isGone = true
    })
    await Promise.all(open)
    throw error
  }
}

/** What Bun prepares once: a statement with the types of its values. */
const formOf = (text: string, values: readonly unknown[]): string => `${text} ${values.map(typeOf).join('')}`

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'n'
  if (typeof value === 'number') return Number.isInteger(value) ? (Math.abs(value) < 2 ** 31 ? 'i' : 'l') : 'f'
  return typeof value === 'object' ? `(${value.constructor.name})` : typeof value
}

const late = () => new Error('a statement came after the end of its transaction')
