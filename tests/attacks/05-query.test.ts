// A query of a team only reads, whatever its text is: on PostgreSQL, behind PgBouncer, and on MariaDB.

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { createServer, connect as dial } from 'node:net'
import { join } from 'node:path'
import type { JsonObject } from '../../lib/json.ts'
import { whyNoQuery } from '../../lib/vendors/database/mysql-query.ts'
import { statementOf } from '../../lib/vendors/database/statement.ts'
import { tokensOf } from '../../lib/vendors/database/tokens.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { hostileTexts } from '../support/hostile.ts'
import { hasPgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { doctorOf, execute, query } from '../support/query.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { mysqlDatabase, postgresDatabase, sqliteDatabase, type TestDatabase } from '../vendors/databases.ts'

const random = randomFrom(seedOf('query'))
const [postgres, mysql, sqlite] = await Promise.all([postgresDatabase(), mysqlDatabase(), sqliteDatabase()])
afterAll(async () => {
  for (const each of [postgres, mysql, sqlite]) await each?.close()
})

/** A table with one row, and how many it has now. */
async function kept(at: TestDatabase, name: string) {
  const table = at.table(name)
  await at.sql(`CREATE TABLE ${table} (a int)`)
  await at.sql(`INSERT INTO ${table} VALUES (1)`)
  return { table, rows: async () => (await at.sql(`SELECT a FROM ${table}`)).length }
}

/** Texts that PostgreSQL reads otherwise than a regular expression expects, with a second statement in each. */
const SECOND = (table: string, write = `INSERT INTO ${table} VALUES (2)`): string[] => [
  `SELECT 1 AS a$b$; COMMIT; ${write} --$b$`,
  `SELECT 1 AS a$b$; COMMIT; ${write}; SELECT 1 AS c$b$`,
  `SELECT 1 /* /* */ ' */; COMMIT; ${write} --'`,
  `SELECT 1 /* /* */ */; COMMIT; ${write}`,
  `SELECT $ä$ $é$ $ä$; COMMIT; ${write} --$é$`,
  `SELECT 1 AS é$x$; COMMIT; ${write} --$x$`,
  `SELECT U&'\\' ; COMMIT; ${write} --'`,
  `SELECT '\\'; COMMIT; ${write} --'`,
  `SELECT "a\\"; COMMIT; ${write} --"`,
  `SELECT 1; COMMIT; ${write}`,
  `SELECT 1 AS "\u00a0";\u00a0COMMIT; ${write}`,
]

describe.skipIf(!postgres)('PostgreSQL', () => {
  test('a second statement is refused wherever the first one ends, and nothing is written', async () => {
    const { table, rows } = await kept(postgres!, 'second')
    for (const sql of SECOND(table)) {
      for (const more of [{}, { params: [1] }] as JsonObject[]) {
        const text = more.params ? sql.replace('SELECT', 'SELECT $1::int,') : sql
        expect(await failureOf(query(postgres!, text, more))).toMatchObject({ sent: 'no', retryable: false })
        expect([sql, await rows()]).toEqual([sql, 1])
      }
    }
  })

  test('a statement of `execute` is one, too', async () => {
    const { table, rows } = await kept(postgres!, 'executed')
    for (const sql of SECOND(table)) {
      await failureOf(execute(postgres!, sql))
      expect([sql, await rows()]).toEqual([sql, 1])
    }
    const body = `BEGIN ATOMIC SELECT 1; SELECT 2; END`
    const name = `${table}_of`
    await execute(postgres!, `CREATE FUNCTION ${name}() RETURNS int LANGUAGE sql ${body}`)
    expect((await query(postgres!, `SELECT ${name}() AS n;`)).items).toEqual([{ n: 2 }])
  })

  test('what is no query is refused, and so is what writes inside of one', async () => {
    const { table, rows } = await kept(postgres!, 'single')
    const file = join(folder(), 'victim')
    for (const sql of [
      `COPY (SELECT 1) TO PROGRAM 'touch ${file}'`,
      `COPY (SELECT 1) TO '${file}'`,
      `COPY ${table} FROM PROGRAM 'touch ${file}; echo 2'`,
      `WITH x AS (INSERT INTO ${table} VALUES (2) RETURNING a) SELECT a FROM x`,
      `INSERT INTO ${table} VALUES (2) RETURNING a`,
      `DO $$ BEGIN COMMIT; INSERT INTO ${table} VALUES (2); END $$`,
      `EXPLAIN ANALYZE INSERT INTO ${table} VALUES (2)`,
      `SELECT a INTO ${table}_copy FROM ${table}`,
      `SELECT set_config('transaction_read_only', 'off', false)`,
      'SET TRANSACTION READ WRITE',
      ...['COMMIT', 'ROLLBACK', 'ABORT', 'END', "PREPARE TRANSACTION 'x'", 'SAVEPOINT x', 'DISCARD ALL', 'VACUUM', ''],
    ]) {
      expect([sql, (await failureOf(query(postgres!, sql))).sent]).toEqual([sql, 'no'])
      expect([sql, await rows(), existsSync(file)]).toEqual([sql, 1, false])
    }
    const copy = await failureOf(query(postgres!, `COPY (SELECT 1) TO '${file}'`))
    expect(copy.hint).toContain('a query is one SELECT, VALUES, TABLE or WITH')
  })

  test('SELECT, VALUES, TABLE and WITH are queries, with a semicolon and comments behind them', async () => {
    const { table } = await kept(postgres!, 'read')
    for (const sql of [
      'SELECT 1 AS a',
      '(SELECT 1 AS a)',
      `TABLE ${table}`,
      'WITH x AS (VALUES (1)) SELECT column1 AS a FROM x',
      `SELECT a$b$ AS a FROM (SELECT 1 AS a$b$) x; -- done`,
      'SELECT /* /* ; */ */ 1 AS a ;; /* end */',
    ]) {
      expect([sql, (await query(postgres!, sql)).items]).toEqual([sql, [{ a: 1 }]])
    }
    expect((await query(postgres!, 'VALUES (1)')).items).toEqual([{ column1: 1 }])
  })

  test('what a query sends is the start of a transaction, one prepared statement without a name, and a ROLLBACK', async () => {
    const url = new URL(String(postgres!.settings.url))
    const way = await recorded(new URL(url))
    url.hostname = '127.0.0.1'
    url.port = String(way.port)
    await query({ settings: { url: url.href } }, 'SELECT now() AS a')
    await query({ settings: { url: url.href } }, 'SELECT :a::int AS a', { params: { a: 1 } })
    way.close()
    expect(way.connections).toHaveLength(2)
    for (const sent of way.connections.map(messagesOf)) {
      // What Bun's client always sends; PgBouncer knows each of them.
      for (const name of Object.keys(sent.startup))
        expect(['user', 'database', 'client_encoding', 'DateStyle']).toContain(name)
      expect(sent.parsed.map(({ name }) => name)).toEqual([''])
      expect(sent.parsed[0]!.sql).toMatch(/^DECLARE cadre_rows NO SCROLL CURSOR FOR SELECT/)
      expect(sent.simple[0]).toStartWith('BEGIN READ ONLY; SET LOCAL ')
      expect(sent.simple.join(';')).not.toMatch(/SET (?!LOCAL)/)
      expect(sent.simple.at(-1)).toBe('ROLLBACK')
    }
  })

  test('doctor tells what a role can do in spite of a read-only transaction', async () => {
    const name = `cadre_${crypto.randomUUID().slice(0, 8)}`
    const password = crypto.randomUUID()
    await postgres!.sql(`CREATE DATABASE ${name}`)
    await postgres!.sql(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'`)
    const url = new URL(String(postgres!.settings.url))
    url.pathname = `/${name}`
    const owner = new Bun.SQL(url, { max: 1 })
    try {
      expect(await doctorOf({ settings: { url: url.href } })).toContain('the role is a superuser')
      const plain = { settings: { url: url.href, user: name, password } }
      expect(await doctorOf(plain)).not.toContain('more than read')
      await owner.unsafe(`GRANT pg_write_server_files, pg_execute_server_program TO ${name}`)
      await owner.unsafe('CREATE EXTENSION dblink')
      expect(await doctorOf(plain)).toEndWith(
        '; a query can do more than read, because the role is a member of pg_execute_server_program, the role is a ' +
          'member of pg_write_server_files, the database has the extension dblink: use a role that may only read',
      )
    } finally {
      await owner.close({ timeout: 0 })
      await postgres!.sql(`DROP DATABASE ${name} WITH (FORCE)`)
      await postgres!.sql(`DROP ROLE ${name}`)
    }
  }, 60_000)
})

describe.skipIf(!postgres || !hasPgBouncer)('PgBouncer, which gives each transaction another connection', () => {
  test('queries and statements go through, and leave nothing behind for others', async () => {
    const at = postgres!
    const { table, rows } = await kept(at, 'pooled')
    const receipts = at.table('pooled_receipts')
    await at.sql(`CREATE TABLE ${receipts} (entry_key varchar(64) PRIMARY KEY, affected bigint)`)
    const { location: url, ...pooler } = await startPgBouncer(String(at.settings.url), { size: 2 })
    try {
      const pooled = { settings: { url, receipts } }
      const others = new Bun.SQL(url, { max: 2, prepare: false })
      const shown = () =>
        others.unsafe(`SELECT current_setting('datestyle') AS d, current_setting('timezone') AS t,
        current_setting('bytea_output') AS b, current_setting('default_transaction_read_only') AS r,
        (SELECT count(*)::int FROM pg_prepared_statements) + (SELECT count(*)::int FROM pg_cursors) AS n`)
      const before = await shown()
      const off = `SELECT set_config('default_transaction_read_only', 'on', false) AS a, '\\x01'::bytea AS b`
      const calls = Array.from({ length: 12 }, (_, n) =>
        n % 3 === 0
          ? execute(pooled, `INSERT INTO ${table} VALUES (:n)`, { params: { n } })
          : query(pooled, n % 3 === 1 ? off : 'SELECT count(*) AS n FROM generate_series(1, :n) x', {
              ...(n % 3 === 2 && { params: { n } }),
            }),
      )
      await Promise.all(calls)
      expect((await query(pooled, off)).items).toEqual([{ a: 'on', b: 'AQ==' }])
      await failureOf(query(pooled, SECOND(table)[0]!))
      for (let each = 0; each < 4; each++) expect(await shown()).toEqual(before)
      // All have the key of one entry, so its receipt is there after the first.
      expect(await rows()).toBe(2)
      expect(await doctorOf(pooled)).toContain('PostgreSQL')
      await others.close({ timeout: 0 })
    } finally {
      await pooler[Symbol.asyncDispose]()
    }
  }, 60_000)
})

describe.skipIf(!mysql)('MariaDB', () => {
  test('what is no query is refused before anything is sent, and writes nothing', async () => {
    const { table, rows } = await kept(mysql!, 'kept')
    const file = join(folder(), 'victim')
    for (const sql of [
      `SELECT 1; INSERT INTO ${table} VALUES (2)`,
      `BEGIN NOT ATOMIC COMMIT; INSERT INTO ${table} VALUES (2); END`,
      `SELECT 1 /*! INTO OUTFILE '${file}' */`,
      `SELECT 1 /*M! INTO OUTFILE '${file}' */`,
      `SELECT 1 /*!50000 INTO OUTFILE '${file}' */`,
      `SELECT 1 INTO OUTFILE '${file}'`,
      `SELECT 1 into/**/dumpfile '${file}'`,
      `SELECT 1e0INTO OUTFILE '${file}'`,
      `SELECT 1.5INTO OUTFILE '${file}'`,
      `SELECT \\NINTO OUTFILE '${file}'`,
      `SELECT 'a'INTO OUTFILE '${file}'`,
      `SELECT 1--1\nINTO OUTFILE '${file}'`,
      `SELECT '\\' INTO OUTFILE '${file}' -- '`,
      `(SELECT 1) INTO OUTFILE '${file}'`,
      `DROP TABLE ${table}`,
      `/* SELECT */ DROP TABLE ${table}`,
      `TRUNCATE ${table}`,
      `SET GLOBAL general_log_file = '${file}'`,
      'COMMIT',
      `INSERT INTO ${table} VALUES (2) RETURNING a`,
      `SET STATEMENT max_statement_time = 1 FOR DELETE FROM ${table}`,
      `ANALYZE FORMAT=JSON DELETE FROM ${table}`,
      `WITH x AS (SELECT 1) DELETE FROM ${table}`,
      '/* never closed',
      '',
    ]) {
      expect([sql, (await failureOf(query(mysql!, sql))).sent]).toEqual([sql, 'no'])
      expect([sql, await rows(), existsSync(file)]).toEqual([sql, 1, false])
    }
    await failureOf(execute(mysql!, `INSERT INTO ${table} VALUES (2); INSERT INTO ${table} VALUES (3)`))
    expect(await rows()).toBe(1)
  })

  test('queries with such words in quotes and comments are queries', async () => {
    for (const sql of [
      `SELECT 'into' AS a`,
      'SELECT 1 AS `into` -- into',
      `SELECT "INTO OUTFILE '/x'" AS a`,
      'SELECT 1 AS a /* into outfile */ # into',
      'SELECT 1 AS pinto, 2 AS into_, 3 AS `x`;',
      '(SELECT 1 AS a)',
      'WITH x AS (SELECT 1 AS a) SELECT a FROM x',
      'VALUES (1)',
      'SHOW TABLES',
      'EXPLAIN SELECT 1',
    ]) {
      expect([sql, whyNoQuery(sql)]).toEqual([sql, null])
      await query(mysql!, sql)
    }
  })

  test('quotes are judged by each sql_mode that a server may have', () => {
    for (const sql of [
      `SELECT '\\' INTO OUTFILE '/x' -- '`,
      `SELECT "\\" INTO OUTFILE '/x' -- "`,
      `SELECT '\\'/*! INTO OUTFILE "/x" */ -- '`,
    ]) {
      expect(whyNoQuery(sql)).not.toBeNull()
    }
  })
})

async function unnested(at: TestDatabase, all: string[]) {
  const sql = 'SELECT v AS a FROM unnest(:all::text[]) WITH ORDINALITY x(v, n) ORDER BY n'
  return (await query(at, sql, { params: { all } })).items.map(({ a }) => a)
}

async function throughJson(at: TestDatabase, all: string[]) {
  const table = at.table('texts')
  await at.sql(`CREATE TABLE ${table} (doc json)`)
  await execute(at, `INSERT INTO ${table} (doc) VALUES (:all)`, { params: { all } })
  const [row] = (await query(at, `SELECT doc FROM ${table}`)).items
  return (typeof row!.doc === 'string' ? JSON.parse(row!.doc) : row!.doc) as string[]
}

describe('hostile texts', () => {
  const texts = hostileTexts(random, 250).filter(text => text.isWellFormed())
  const databases = [postgres, mysql, sqlite].filter(each => each !== null)

  test('as values of parameters, they come back as they were sent', async () => {
    for (const at of databases) {
      // A text of PostgreSQL has no NUL.
      const values = at === postgres ? texts.filter(text => !text.includes('\0')) : texts
      const got = at === postgres ? await unnested(at, values) : await throughJson(at, values)
      expect(got.length).toBe(values.length)
      for (const [index, value] of values.entries()) if (got[index] !== value) expect(got[index]).toBe(value)
    }
  }, 60_000)

  test('as names of parameters, they are refused, and nothing is sent', async () => {
    for (const name of texts) {
      if (/^[A-Za-z_]\w*$/.test(name)) continue
      const settings = { provider: 'postgres', host: '127.0.0.1', port: 1, database: 'x', user: 'x', password: 'x' }
      const error = await failureOf(query({ settings }, `SELECT 1`, { params: { [name]: 1 } }))
      expect(error.code).toBe('invalid_request')
    }
  })

  test('as a part of a query, they change nothing', async () => {
    const parts = texts.slice(-60).map(text => ({ text, first: random.below(3) }))
    const tryAll = async (at: TestDatabase) => {
      const { table, rows } = await kept(at, 'hostile')
      const end = `; COMMIT; INSERT INTO ${table} VALUES (2)`
      for (const { text, first } of parts) {
        for (const sql of [text, `SELECT 1 AS ${text}${end}`, `SELECT '${text}' AS a${end}`].slice(first)) {
          await query(at, sql.slice(0, 5_000)).catch(() => null)
        }
      }
      expect(await rows()).toBe(1)
    }
    await Promise.all(databases.map(tryAll))
  }, 300_000)

  test('the tokens of a text of a megabyte are found in seconds, not in minutes', () => {
    for (const part of ["E'\\'", "'", '$a$', '/*', '/* */', '--', ':a', '`', '[', '$', "''", '\\', '$a', ';']) {
      for (const dialect of ['postgres', 'mysql', 'sqlite'] as const) {
        const began = performance.now()
        const text = part.repeat(2 ** 20 / part.length)
        let length = 0
        for (const token of tokensOf(text, dialect)) length += token.text.length
        expect(length).toBeLessThanOrEqual(text.length)
        expect(performance.now() - began).toBeLessThan(10_000)
      }
    }
  }, 60_000)
})

test.each([['SELECT $ä$ :a $ä$, a$b$:x, $1'], ['SELECT /* /* :a */ :b */ 1'], [`SELECT U&'d\\0061t :a', "a :b"`]])(
  'PostgreSQL: in %s only what is no text is a parameter',
  sql => {
    const names = [...tokensOf(sql, 'postgres')].flatMap(({ kind, text }) => (kind === 'name' ? text : []))
    expect(names).toEqual(sql.includes(':x') ? [':x'] : [])
    if (names.length === 0) expect(statementOf('x', 'postgres', sql, {}).text).toBe(sql)
  },
)

/** A way to a server that records what is sent. */
async function recorded(url: URL) {
  const connections: Buffer[][] = []
  const server = createServer(client => {
    const sent: Buffer[] = []
    connections.push(sent)
    const upstream = dial(Number(url.port || 5432), url.hostname)
    client.on('data', data => {
      sent.push(Buffer.from(data as Uint8Array))
      upstream.write(data)
    })
    upstream.on('data', data => client.writable && client.write(data))
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => other.end())
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { connections, port: (server.address() as { port: number }).port, close: () => void server.close() }
}

/** The messages of a client of PostgreSQL: https://www.postgresql.org/docs/current/protocol-message-formats.html */
function messagesOf(chunks: Buffer[]) {
  const bytes = Buffer.concat(chunks)
  const length = bytes.readInt32BE(0)
  const words = bytes.subarray(8, length).toString().split('\0')
  const startup = Object.fromEntries(
    words.slice(0, words.indexOf('')).flatMap((name, at, all) => (at % 2 === 0 ? [[name, all[at + 1]]] : [])),
  )
  const simple: string[] = []
  const parsed: { name: string; sql: string }[] = []
  for (let at = length; at < bytes.length; ) {
    const end = at + 1 + bytes.readInt32BE(at + 1)
    const [first = '', second = ''] = bytes
      .subarray(at + 5, end)
      .toString()
      .split('\0')
    if (bytes[at] === 0x51) simple.push(first)
    if (bytes[at] === 0x50) parsed.push({ name: first, sql: second })
    at = end
  }
  return { startup, simple, parsed }
}
