// PostgreSQL and MySQL over Bun's client: one connection for each call.
//
// What a team wrote is sent as a prepared statement, which is one statement for the server, whatever its text contains.
// It runs in a transaction that we begin and end, and the connection is closed afterwards. On PostgreSQL nothing is set
// for the session or at its start, and no prepared statement has a name outside of a transaction, so that a pooler of
// transactions may stand between (https://www.pgbouncer.org/features.html).
//
// A query runs in a read-only transaction. PostgreSQL's rows are fetched from a cursor, which exists for SELECT, VALUES,
// TABLE and WITH only: COPY, which can run programs there, has none. So memory is limited whatever the number of rows.
// Bun's client has no cursor for MySQL and holds the complete result.
//
// A lost connection leaves nothing behind unless it was lost at the commit.

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { isLoopback } from '../../agent/net/address.ts'
import { messageOf } from '../../error.ts'
import type { Json } from '../../json.ts'
import { pause, unlessAborted } from '../../wait.ts'
import { addressesOf, firstReached, optionsOf, type Server } from './connect.ts'
import { type Batch, type Database, type Receipt, receiptsAt, type Written } from './database.ts'
import { mysqlValue, postgresForm } from './forms.ts'
import type { Column } from './lists.ts'
import { whyNoQuery } from './mysql-query.ts'
import { SEVERAL, type Statement, spotOf } from './statement.ts'

type Result = unknown[][] & Bun.SQL.ResultMetadata

/** Milliseconds to wait until the server has ended a query that is not wanted any more. */
const CANCEL_MS = 1_000
/** Number of bytes that a batch of rows should have, and the number of rows of the first and of the largest one. */
const BATCH_BYTES = 1024 * 1024
const FIRST_ROWS = 100
const MOST_ROWS = 5_000

const PREPARE = 'PREPARE cadre_look AS '
/** Whether each value of a prepared statement is an array or JSON, also where its type is a domain. */
const TAKES_LISTS = `SELECT t.typcategory = 'A' OR coalesce(nullif(t.typbasetype, 0), t.oid) IN ('json'::regtype, 'jsonb'::regtype)
  FROM pg_prepared_statements p, unnest(p.parameter_types) WITH ORDINALITY AS v(type, number), pg_type t
  WHERE p.name = 'cadre_look' AND t.oid = v.type ORDER BY v.number`
/** MariaDB has JSON as a long text with a constraint that bears the name of the column. */
const MARIADB_JSON = `SELECT 1 FROM information_schema.check_constraints WHERE constraint_schema = ?
  AND table_name = ? AND constraint_name = ? AND check_clause LIKE 'json_valid(%'`

const CURSOR = 'DECLARE cadre_rows NO SCROLL CURSOR FOR '
/** The forms of values that forms.ts reads, until the transaction ends, and the name in PostgreSQL's list of activity. */
const LOCALLY = ['application_name = cadre', 'datestyle = ISO', 'timezone = UTC', 'bytea_output = hex']
  .map(each => `; SET LOCAL ${each}`)
  .join('')
/**
 * What a role of PostgreSQL can do in spite of a read-only transaction. Functions run with its rights: these of the
 * server's files and programs, and dblink, which opens a transaction of its own.
 */
const RISKS: readonly [sql: string, words: string][] = [
  [`SELECT 1 FROM pg_roles WHERE rolname = current_user AND rolsuper`, 'the role is a superuser'],
  ...['pg_execute_server_program', 'pg_write_server_files'].map((role): [string, string] => [
    `SELECT 1 FROM pg_roles WHERE rolname = '${role}' AND pg_has_role(oid, 'MEMBER')`,
    `the role is a member of ${role}`,
  ]),
  [`SELECT 1 FROM pg_extension WHERE extname = 'dblink'`, 'the database has the extension dblink'],
]
/** Statements of MySQL that are undone with their transaction; others may commit by themselves. */
const UNDONE = /^\s*(insert|update|delete|replace|with)\b/i

export async function openServer(context: AgentContext<unknown>, access: Server): Promise<Database> {
  const isPostgres = access.provider === 'postgres'
  /** What may have been written when the connection is lost now. */
  let sent: 'no' | 'unknown' = 'no'
  let running: Promise<unknown> = Promise.resolve()
  const during = async <T>(work: () => Promise<T>, statement?: Statement, shift = 0): Promise<T> => {
    try {
      return await unlessAborted(work(), context.signal)
    } catch (error) {
      if (!context.signal.aborted) throw explain(context, access, error, sent, statement, shift)
      throw new AgentError(`[${context.callName}] ${access.label}: stopped`, { code: 'aborted', sent, cause: error })
    }
  }
  const reserved = async (address: string) => {
    const pool = new Bun.SQL(optionsOf(access, address))
    const close = () => pool.close({ timeout: 0 }).catch(() => {})
    const connection = await during(() => pool.reserve()).catch(async error => {
      await close()
      throw error
    })
    return { connection, close }
  }
  const { connection, close } = await firstReached(await addressesOf(context, access), reserved)
  const run = (query: Bun.SQL.Query<Result>, statement?: Statement, shift = 0): Promise<Result> => {
    const stop = () => void query.cancel().catch(() => {})
    context.signal.addEventListener('abort', stop, { once: true })
    const asked = isPostgres ? query.raw() : query.values()
    running = asked.catch(() => {})
    const work = async () => asked
    return during(work, statement, shift).finally(() => context.signal.removeEventListener('abort', stop))
  }
  /** Runs a text of ours, which may be several statements. */
  const ours = (text: string) => run(connection.unsafe(text))
  /** Runs exactly one statement: the server refuses a second one. Without values `unsafe` would send the text as `ours`. */
  const one = (text: string, values: Json[], statement?: Statement, shift = 0) =>
    run(values.length > 0 ? connection.unsafe(text, values) : connection(literally(text)), statement, shift)
  const begin = () => ours(isPostgres ? `BEGIN${LOCALLY}` : 'START TRANSACTION')
  const undo = () => connection.unsafe('ROLLBACK').catch(() => {})
  const batch = (result: Result): Batch => {
    const columns = result.columns ?? []
    const forms = columns.map(({ type }) =>
      isPostgres ? textOf(postgresForm(type)) : (value: unknown) => mysqlValue(value, type),
    )
    return {
      columns: columns.map(({ name }) => name),
      rows: result.map(row => row.map((value, at) => forms[at]!(value))),
    }
  }

  /** Throws for a list that the database takes neither as an array nor as JSON. */
  async function judgeLists(statement: Statement): Promise<void> {
    const { lists, text } = statement
    if (lists.length === 0) return
    if (!isPostgres) {
      for (const { column, refused } of lists) if (!(await hasJson(column!))) throw refused()
      return
    }
    // The statement has a name for this moment alone, within a transaction, so that a pooler may stand between.
    await one(PREPARE + text, [], statement, PREPARE.length)
    const types = await ours(TAKES_LISTS)
    await ours('DEALLOCATE cadre_look')
    for (const { at, refused } of lists) if (types[at] && String(types[at]![0]) !== 't') throw refused()
  }

  async function hasJson({ table, column }: Column): Promise<boolean> {
    const [name = '', schema = null] = table.toReversed()
    const found = typeof column === 'number' ? 'ordinal_position = ?' : 'column_name = ?'
    const sql = `SELECT table_schema, column_name, data_type FROM information_schema.columns
      WHERE table_schema = coalesce(?, database()) AND table_name = ? AND ${found}`
    const [row] = await one(sql, [schema, name, typeof column === 'number' ? column + 1 : column])
    const [at = '', called = '', type = ''] = (row ?? []).map(String)
    return type === 'json' || (type === 'longtext' && (await one(MARIADB_JSON, [at, name, called])).length > 0)
  }

  async function* fromCursor(statement: Statement, most: number): AsyncGenerator<Batch, void> {
    await ours(`BEGIN READ ONLY${LOCALLY}`)
    await judgeLists(statement)
    await one(CURSOR + statement.text, statement.values, statement, CURSOR.length)
    for (let left = most, rows = FIRST_ROWS; left > 0; ) {
      const asked = Math.min(rows, left)
      const result = await ours(`FETCH FORWARD ${asked} FROM cadre_rows`)
      yield batch(result)
      if (result.length < asked) return
      left -= result.length
      rows = Math.max(1, Math.min(MOST_ROWS, Math.floor((BATCH_BYTES * result.length) / sizeOf(result))))
    }
  }

  async function* atOnce(statement: Statement, most: number): AsyncGenerator<Batch, void> {
    const problem = whyNoQuery(statement.text)
    if (problem !== null) {
      const hint = 'a query must only read; use the action `execute` to write'
      const message = `[${context.callName}] \`sql\` ${problem}`
      throw new AgentError(message, { code: 'invalid_request', hint, sent: 'no' })
    }
    await ours(`SET sql_select_limit = ${most}, time_zone = '+00:00'`)
    await ours('START TRANSACTION READ ONLY')
    yield batch(await one(statement.text, statement.values, statement))
  }

  const receipts = receiptsAt(isPostgres ? n => `$${n}` : () => '?')
  return {
    async about() {
      if (!isPostgres) {
        const [version = '', user = ''] = (await ours('SELECT version(), current_user()'))[0]!.map(String)
        return { version, user, risks: [] }
      }
      const risky = RISKS.map(([sql]) => `EXISTS (${sql})`).join(', ')
      const [version = '', user = '', ...found] = (await ours(`SELECT version(), current_user, ${risky}`))[0]!.map(
        String,
      )
      const risks = RISKS.flatMap(([, words], at) => (found[at] === 't' ? words : []))
      return { version: version.split(' ', 2).join(' '), user, risks }
    },
    async *read(statement, most) {
      try {
        yield* isPostgres ? fromCursor(statement, most) : atOnce(statement, most)
      } finally {
        if (!context.signal.aborted) await undo()
      }
    },
    async write(statement, receipt) {
      try {
        await begin()
        if (receipt && (await isThere(one(receipts.add(receipt.table), [receipt.key])))) {
          await undo()
          return { ...(await before(receipt)), returned: null, before: true }
        }
        await judgeLists(statement)
        if (!isPostgres && !UNDONE.test(statement.text)) sent = 'unknown'
        const result = await one(statement.text, statement.values, statement)
        // A block of several statements, which MariaDB takes for one, has a count for each.
        const affected = result.affectedRows ?? null
        if (receipt) await one(receipts.count(receipt.table), [affected, receipt.key])
        sent = 'unknown'
        await ours('COMMIT')
        return { affected, returned: result.columns?.length ? batch(result) : null, before: false }
      } catch (error) {
        if (!context.signal.aborted) await undo()
        throw error
      }
    },
    async find(receipt) {
      await begin()
      const found = await isThere(one(receipts.add(receipt.table), [receipt.key]))
      await undo()
      return found ? (await before(receipt)).affected : undefined
    },
    async [Symbol.asyncDispose]() {
      // The server would not notice that the connection is closed before it has a row to send.
      if (context.signal.aborted && isPostgres) await Promise.race([running, pause(CANCEL_MS)])
      await close()
    },
  }

  async function before({ table, key }: Receipt): Promise<Pick<Written, 'affected'>> {
    // In a transaction, because a pooler may otherwise send the parts of one statement to different servers.
    await begin()
    const [row] = await one(receipts.get(table), [key])
    await undo()
    const count = row?.[0]
    return { affected: count === null || count === undefined ? null : Number(String(count)) }
  }
}

/** A text as the client takes a template without values, which it sends as a prepared statement. */
function literally(text: string): TemplateStringsArray {
  return Object.defineProperty([text], 'raw', { value: [text] }) as string[] & { raw: string[] }
}

/** Whether the key is in the table already, so that it could not be added. */
async function isThere(adding: Promise<unknown>): Promise<boolean> {
  try {
    await adding
    return false
  } catch (error) {
    if (error instanceof AgentError && error.code === 'exists') return true
    throw error
  }
}

function textOf(form: (text: string) => Json): (value: unknown) => Json {
  return value => (value instanceof Uint8Array ? form(Buffer.from(value).toString()) : null)
}

function sizeOf(rows: unknown[][]): number {
  let size = 1
  for (const row of rows) for (const value of row) size += value instanceof Uint8Array ? value.byteLength : 8
  return size
}

interface ServerError extends Error {
  code?: string
  /** PostgreSQL: the SQLSTATE. MySQL: the number of the error. */
  errno?: string | number
  sqlState?: string
  position?: string
  detail?: string
  hint?: string
}

/** SQLSTATE by its first characters, with our code and what to do. The first match counts. */
const STATES: readonly [state: RegExp, code: string, hint: (settings: string) => string | undefined][] = [
  [/^28/, 'unauthorized', settings => `check ${settings}.user and ${settings}.password`],
  [/^(3D|42000:1049$)/, 'not_found', settings => `check ${settings}.database`],
  [/^23(505|000:(1062|1586))$/, 'exists', () => undefined],
  [/^25006/, 'read_only', () => 'a query must only read; use the action `execute` to write'],
  [
    /^(42501|42000:(1044|1142|1143|1227))/,
    'forbidden',
    settings => `the user of ${settings}.user lacks the permission`,
  ],
  [/^(40001|40P01)/, 'conflict', () => 'the transaction collided with another one; give the phase `retry`'],
  [/^(08|53|57P)/, 'unavailable', () => 'the server is starting, stopping or overloaded'],
]
/** What PostgreSQL says of a statement that a cursor cannot have: a syntax error, or a feature that is not supported. */
const NO_CURSOR = ['42601', '0A000']
const QUERIES = 'a query is one SELECT, VALUES, TABLE or WITH that only reads; use the action `execute` for others'
const RETRYABLE = ['conflict', 'unavailable']
/** Codes of the client and of its TLS library. MySQL's client says the last one of a server without TLS. */
const TLS = /TLS|CERT|SIGNATURE|SELF_SIGNED|HOSTNAME|^ERR_SSL|AUTHENTICATION_FAILED/
const CONNECTION = /(CONNECTION_REFUSED|CONNECTION_CLOSED|CONNECTION_TIMEOUT|CONNECTION_FAILED|LIFETIME|IDLE)/

/** The error of the client, in the words of the server. */
function explain(
  { agent, callName }: AgentContext<unknown>,
  { label, provider, host, tls }: Server,
  error: unknown,
  sent: 'no' | 'unknown',
  statement: Statement | undefined,
  shift: number,
): unknown {
  const { code = '', errno, sqlState, position, detail, hint: advice, message } = error as ServerError
  // A certificate that is refused is an error of the TLS library.
  if (error instanceof AgentError || !(error instanceof Bun.SQL.SQLError || TLS.test(code))) return error
  const settings = `agents.${agent}`
  const options = { cause: error }
  if (code.endsWith('SYNTAX_ERROR') && statement?.isSeveral) {
    const [problem, hint] = SEVERAL
    return new AgentError(`[${callName}] ${problem}: ${message}`, {
      ...options,
      code: 'invalid_request',
      sent: 'no',
      hint,
    })
  }
  if (code.endsWith('SERVER_ERROR') || code.endsWith('SYNTAX_ERROR')) {
    const state = sqlState ?? String(errno)
    const [, kind = 'rejected', hintOf] =
      STATES.find(([states]) => states.test(sqlState ? `${state}:${errno}` : state)) ?? []
    const spot =
      position !== undefined && statement
        ? `, ${spotOf(statement, statement.origin(Number(position) - 1 - shift))}`
        : ''
    const hint = hintOf?.(settings) ?? advice ?? (shift > 0 && NO_CURSOR.includes(state) ? QUERIES : undefined)
    return new AgentError(
      `[${callName}] ${label}: ${message}${detail ? ` (${detail})` : ''} (SQLSTATE ${state}${spot})`,
      {
        ...options,
        code: kind,
        retryable: RETRYABLE.includes(kind),
        sent: 'no',
        ...(hint && { hint }),
      },
    )
  }
  const said = message || messageOf(error)
  if (CONNECTION.test(code)) {
    const hint = `check that ${provider} is running, and ${settings}.host and ${settings}.port`
    const what = code.endsWith('REFUSED') ? 'no connection' : `the connection broke: ${said}`
    return new AgentError(`[${callName}] ${label}: ${what} (${code})`, {
      ...options,
      code: 'network',
      retryable: true,
      sent,
      hint,
    })
  }
  if (TLS.test(code)) {
    const problem = tls && code.endsWith('AUTHENTICATION_FAILED') ? 'the server does not offer TLS' : said
    const own = isLoopback(host) ? `; on this machine ${settings}.tls may be false` : ''
    const hint = `the server must offer TLS with a trusted certificate for ${host}: for a private authority set ${settings}.ca_file${own}`
    return new AgentError(`[${callName}] ${label}: ${problem} (${code})`, { ...options, code: 'tls', sent, hint })
  }
  return new AgentError(`[${callName}] ${label}: ${said} (${code})`, { ...options, code: 'rejected', sent })
}
