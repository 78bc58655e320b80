// The process that runs one job on a SQLite file (sqlite.ts). A read opens the file for reading only, and runs what
// SQLite itself says only reads (https://sqlite.org/c3ref/stmt_readonly.html). A write is one transaction, and a receipt
// that is there already ends it.

import { Database, SQLiteError } from 'bun:sqlite'
import { readFileSync, writeSync } from 'node:fs'
import type { Json } from '../../json.ts'
import type { Receipt } from './database.ts'
import { receiptsAt } from './database.ts'
import { sqliteValue } from './forms.ts'
import type { Column } from './lists.ts'
import { type Job, type Line, NO_JSON } from './sqlite.ts'

/** Milliseconds to wait for another program that holds the database. */
const BUSY = 10_000
/** Number of characters that are written at once. */
const BUFFERED = 64 * 1024
const STDIN = 0
const STDOUT = 1

let buffered = ''

function say(line: Line): void {
  buffered += `${JSON.stringify(line)}\n`
  if (buffered.length > BUFFERED) flush()
}

function flush(): void {
  const bytes = Buffer.from(buffered)
  buffered = ''
  for (let at = 0; at < bytes.length; ) at += writeSync(STDOUT, bytes, at)
}

function bound(values: Json[]) {
  return values.map(value => {
    if (typeof value === 'boolean') return value ? 1 : 0
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
  })
}

function read(database: Database, sql: string, values: Json[], most: number): void {
  using statement = database.query(sql)
  // A file that is opened for reading does not stop VACUUM INTO another one, or ATTACH, which makes one.
  if (!statement.readonly) throw new NoQuery('the statement does more than read')
  if (!statement.reader) throw new NoQuery('the statement returns no rows')
  say({ columns: statement.columnNames })
  let count = 0
  for (const row of statement.iterate(...bound(values))) {
    if (count++ === most) break
    say(Object.values(row as object).map(sqliteValue))
  }
}

class NoQuery extends Error {
  readonly code = 'SQLITE_READONLY'
}

/** A list for a column that is not declared as JSON. */
class NoJson extends Error {
  readonly code = NO_JSON
  readonly byteOffset: number

  constructor(number: number) {
    super('the column has no JSON')
    this.byteOffset = number
  }
}

function hasJson(database: Database, { table, column }: Column): boolean {
  const [name, schema = null] = table.toReversed()
  const found = typeof column === 'number' ? 'cid = ?3' : 'name = ?3 COLLATE NOCASE'
  const sql = `SELECT type FROM pragma_table_xinfo(?1, ?2) WHERE ${found}`
  // Without a schema it is the first table of the name, as in the statement.
  const [row] =
    schema === null
      ? database.query(sql.replace(', ?2', '').replace('?3', '?2')).values(name!, column)
      : database.query(sql).values(name!, schema, column)
  return /json/i.test(String(row?.[0]))
}

const receipts = receiptsAt(() => '?')

function add(database: Database, { table, key }: Receipt): boolean {
  try {
    database.run(receipts.add(table), [key])
    return true
  } catch (error) {
    if (error instanceof SQLiteError && /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(error.code ?? '')) return false
    throw error
  }
}

function affectedBefore(database: Database, { table, key }: Receipt): number | null {
  const [row] = database.query(receipts.get(table)).values(key)
  return row?.[0] === null || row?.[0] === undefined ? null : Number(row[0])
}

function work(database: Database, job: Job): Json {
  if ('about' in job) return String(database.query('SELECT sqlite_version()').values()[0]![0])
  database.run('BEGIN IMMEDIATE')
  if ('find' in job) {
    const isNew = add(database, job.find)
    database.run('ROLLBACK')
    return { found: !isNew, affected: isNew ? null : affectedBefore(database, job.find) }
  }
  if (!('write' in job)) throw new Error('the job is not known')
  const { receipt, lists } = job
  const wrong = lists.findIndex(column => !hasJson(database, column))
  if (wrong !== -1) throw new NoJson(wrong)
  if (receipt && !add(database, receipt)) {
    database.run('ROLLBACK')
    return { affected: affectedBefore(database, receipt), returned: null, before: true }
  }
  const before = changes(database)
  using statement = database.query(job.write)
  const columns = statement.columnNames
  const rows = statement.values(...bound(job.values)).map(row => row.map(sqliteValue))
  const affected = changes(database) - before
  if (receipt) database.run(receipts.count(receipt.table), [affected, receipt.key])
  database.run('COMMIT')
  return { affected, returned: columns.length > 0 ? { columns, rows } : null, before: false }
}

function changes(database: Database): number {
  return Number(database.query('SELECT total_changes()').values()[0]![0])
}

function main(): void {
  const job = JSON.parse(readFileSync(STDIN, 'utf8')) as Job
  try {
    const reads = 'read' in job || 'about' in job
    using database = new Database(job.file, {
      safeIntegers: true,
      ...(reads ? { readonly: true } : { readwrite: true }),
    })
    database.run(`PRAGMA busy_timeout = ${BUSY}`)
    database.run('PRAGMA foreign_keys = ON')
    if ('read' in job) read(database, job.read, job.values, job.most)
    else say({ result: work(database, job) })
  } catch (error) {
    const { code = '', byteOffset = -1, message } = error as SQLiteError
    say({ failed: { message, code, offset: byteOffset } })
  }
  flush()
}

main()
