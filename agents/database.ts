// database: reads rows from PostgreSQL, MySQL (MariaDB) and SQLite into files, and executes statements.
//
//   settings: url (postgres://user:password@host/name, mysql://…, sqlite:///path), or each part of it: provider, host,
//             port, user, password, database (for SQLite the path of the file); tls?, ca_file?, receipts?
//   query     sources: [{ name, sql, params?, limit? }]            to CSV if the name ends in .csv, else to JSON
//   execute   target_entries: [{ name, sql, params?, effect? }]    once, unless `effect: idempotent`
//
// Templates are never read in `sql`, where `{{{{` is a literal `{{`. Values are in `params`: by name, where `sql` has
// `:name`, or as a list for the database's own `$1` (PostgreSQL) or `?`.
//
// A value that is a list stands alone in `IN (:name)` or `NOT IN (:name)`, where it becomes as many values: nothing is IN
// an empty list, everything is NOT IN it, and a null in a list for NOT IN is an error. On PostgreSQL it may also be one
// array, in `= ANY(:name)` and `<> ALL(:name)`. Columns of arrays and JSON take lists, as functions of JSON do. Anywhere
// else a list is an error. An object becomes JSON.
//
// A query is one statement that reads, in a read-only transaction of its own: for PostgreSQL SELECT, VALUES, TABLE or WITH;
// for MySQL one that begins with these or SHOW, DESCRIBE or EXPLAIN, without INTO and comments that are executed
// (`/*! */`); for SQLite whatever SQLite says only reads. The functions that it calls have the rights of the user,
// some of which are not bound by the transaction (files of the server, dblink): use a user that may only read. `doctor`
// warns of such rights on PostgreSQL. PgBouncer may stand between, also with `pool_mode = transaction`.
//
// The rows of a query are streamed to the file: up to `limit` (10,000; at most 10 million, for MySQL 100,000, whose
// result Bun's client holds in memory). `data` has columns, items (up to 384 KiB), total (the rows of the file), complete
// (whether there are no more) and truncated (whether there are more than items). Whole numbers are numbers up to 2^53 and
// texts beyond; numeric and decimal are texts, so that no digit is lost (`double(x)` makes a number of one); times are
// ISO 8601, with a zone in UTC; bytes are base64; arrays of PostgreSQL are lists. In CSV, NULL is an empty field and an
// empty text is `""`.
//
// A statement runs in a transaction. If the connection is lost before the commit, nothing was written. If it is lost at
// the commit, that is unknown, and a person is asked, unless the setting `receipts` names a table that you created:
//   CREATE TABLE cadre_receipts (entry_key varchar(64) PRIMARY KEY, affected bigint)
// Each statement then leaves its key there, in the same transaction, and is never executed twice. (DDL of MySQL commits
// by itself.) `data` of a statement has affected, and items where it returns rows.
//
// To another machine there is always TLS with a certificate that is verified; to this one with `tls: true`. SQLite works in a process of its own.
//
// https://www.postgresql.org/docs/current/sql.html  https://mariadb.com/kb/en/sql-statements/  https://sqlite.org/lang.html

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  entryOf,
  listingOf,
  literal,
  secret,
  Type,
  withRetries,
} from 'cadre'
import {
  accessOf,
  DATA_BYTES,
  type Database,
  missingAccess,
  nullable,
  openDatabase,
  ROWS_MOST,
  statementOf,
  whyNoAccess,
  writeRows,
} from 'cadre/vendors'

const LIMIT = 10_000

const Settings = Type.Object(
  {
    url: Type.Optional(
      secret({ description: 'The address of the database, such as postgres://user:password@host:5432/name.' }),
    ),
    provider: Type.Optional(
      Type.Enum(['postgres', 'mysql', 'sqlite'], { description: 'The kind of the database. MariaDB is `mysql`.' }),
    ),
    host: Type.Optional(
      Type.String({ minLength: 1, description: 'The host of the server. The default is 127.0.0.1.' }),
    ),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: 'The port of the server.' })),
    user: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'The user of the server. The default is postgres for PostgreSQL and root for MySQL.',
      }),
    ),
    password: Type.Optional(secret({ description: 'The password of the user.' })),
    database: Type.Optional(
      Type.String({ minLength: 1, description: 'The name of the database, or for SQLite the path of its file.' }),
    ),
    tls: Type.Optional(
      Type.Boolean({
        description: 'Whether TLS with a verified certificate is demanded. It always is, except to this machine.',
      }),
    ),
    ca_file: Type.Optional(
      Type.String({ minLength: 1, description: 'The path of the certificate of a private authority, in PEM.' }),
    ),
    receipts: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)?$',
        'x-expected': 'the name of a table, such as receipts or public.receipts',
        description: 'The table in which each statement leaves its key, so that none is executed twice.',
      }),
    ),
  },
  { additionalProperties: false },
)
type Settings = Type.Static<typeof Settings>
type Context = AgentContext<Settings>

const Value = Type.Unknown()
const fields = {
  sql: literal('put the value into `params`, and `:name` here', {
    description: 'One statement. It has no templates, but `:name` for each value of `params`.',
  }),
  params: Type.Optional(
    Type.Union([Type.Record(Type.String(), Value), Type.Array(Value)], {
      description: 'The values of the statement, by name or as a list.',
      'x-expected': 'a mapping of names to values, or a list of values',
    }),
  ),
}
const Query = entryOf({
  ...fields,
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000_000, description: 'The maximum number of rows; 10,000 by default.' }),
  ),
})
const Statement = entryOf({
  ...fields,
  effect: Type.Optional(
    Type.Enum(['idempotent', 'once'], {
      description: 'Whether the statement may be repeated without harm (`idempotent`). The default is `once`.',
    }),
  ),
})
type Statement = Type.Static<typeof Statement>

const Row = Type.Record(Type.String(), Type.Unknown())
const Rows = Type.Object({
  columns: Type.Array(Type.String(), { description: 'The names of the columns.' }),
  ...listingOf({}).properties,
  items: Type.Array(Row, {
    description: 'The first rows, up to 384 KiB. A numeric or decimal is a text: `double(x)` makes a number of it.',
  }),
  total: Type.Integer({ description: 'How many rows the file has.' }),
  complete: Type.Boolean({ description: 'Whether the file has every row: false when there are more than `limit`.' }),
})
const Written = Type.Object({
  affected: nullable(Type.Integer(), { description: 'How many rows were written; null if it is not known.' }),
  items: Type.Optional(Type.Array(Row, { description: 'The rows that the statement returns, by column.' })),
  total: Type.Optional(Type.Integer({ description: 'How many rows the statement returns.' })),
})

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Queries PostgreSQL, MySQL and SQLite, and executes statements.',
  settings: Settings,
  check: whyNoAccess,
  missing: missingAccess,
  async doctor(context) {
    const { label } = accessOf(context)
    await using database = await connect(context)
    const { version, user, risks } = await database.about()
    const warning = `; a query can do more than read, because ${risks.join(', ')}: use a role that may only read`
    return { who: user, missing: [], text: `${label}: ${version}${risks.length > 0 ? warning : ''}` }
  },
  actions: {
    query: {
      direction: 'source',
      description: 'Writes the rows of a statement that only reads to a file. Use a user that may only read, too.',
      effect: 'read',
      example: { name: 'tasks.csv', sql: 'SELECT id, title FROM tasks', limit: 100 },
      entry: Query,
      data: Rows,
      run: query,
    },
    execute: {
      direction: 'target',
      description: 'Executes one statement in a transaction.',
      effect: ({ effect = 'once' }) => effect,
      example: { name: 'done', sql: 'UPDATE tasks SET done = true WHERE id = :id', params: { id: 7 } },
      entry: Statement,
      data: Written,
      run: execute,
      sees: 'at once',
      find,
    },
  },
})

/** Connects, and tries again while the server cannot be reached. Nothing has been sent by then. */
function connect(context: Context): Promise<Database> {
  return withRetries(context, () => openDatabase(context, accessOf(context)))
}

function prepared({ sql, params }: Pick<Statement, 'sql' | 'params'>, context: Context) {
  return statementOf(context.callName, accessOf(context).provider, sql, params as Parameters<typeof statementOf>[3])
}

async function query(entry: Type.Static<typeof Query>, context: Context): Promise<AgentResult> {
  const { name, limit = LIMIT } = entry
  const statement = prepared(entry, context)
  const { provider, label } = accessOf(context)
  if (limit > ROWS_MOST[provider]) {
    throw new AgentError(`[${context.callName}] ${provider} gives at most ${ROWS_MOST[provider]} rows to one query`, {
      code: 'invalid_request',
      hint: 'set a smaller `limit`, and query in parts: WHERE id > :last ORDER BY id',
      sent: 'no',
    })
  }
  await using database = await connect(context)
  // One row more shows whether there are more.
  const { data, more } = await writeRows(context, { name, limit, batches: database.read(statement, limit + 1) })
  if (more) context.log(`${name} has the first ${data.total} rows, and there are more: set a larger \`limit\``)
  return {
    text: `${label}: ${data.total} rows${more ? ', and there are more' : ''}`,
    data: { ...data, complete: !more },
  }
}

async function execute(entry: Statement, context: Context): Promise<AgentResult> {
  const statement = prepared(entry, context)
  await using database = await connect(context)
  const { affected, returned, before } = await database.write(statement, receiptOf(context))
  if (before) return written(affected, context)
  const items = []
  let bytes = 0
  for (const row of returned?.rows ?? []) {
    bytes += Buffer.byteLength(JSON.stringify(row))
    if (bytes > DATA_BYTES) break
    items.push(Object.fromEntries(returned!.columns.map((column, at) => [column, row[at]!])))
  }
  const result = written(affected, context)
  return returned ? { ...result, data: { affected, items, total: returned.rows.length } } : result
}

async function find(_: Statement, context: Context): Promise<AgentResult | null> {
  const receipt = receiptOf(context)
  if (!receipt) {
    throw new AgentError(`[${context.callName}] the database cannot tell whether the statement was executed`, {
      code: 'unknown',
      hint: `look at the data; with a table in agents.${context.agent}.receipts it will say so next time`,
    })
  }
  await using database = await connect(context)
  const affected = await database.find(receipt)
  return affected === undefined ? null : written(affected, context)
}

function receiptOf({ settings: { receipts }, key }: Context) {
  return receipts === undefined ? null : { table: receipts, key }
}

function written(affected: number | null, context: Context): AgentResult {
  const { label } = accessOf(context)
  return {
    text: `${label}: ${affected ?? 'an unknown number of'} rows written`,
    data: { affected },
    external: { id: context.key },
  }
}
