import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, connect as dial, type Socket } from 'node:net'
import { join } from 'node:path'
import database from '../../agents/database.ts'
import type { AgentContext, AgentResult } from '../../lib/agent/agent-context.ts'
import { discover } from '../../lib/agent/catalogue.ts'
import type { JsonObject } from '../../lib/json.ts'
import { problems } from '../../lib/schema/schema.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { statementOf } from '../../lib/vendors/database/statement.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { outcomeOf } from '../support/outcome.ts'
import { truthful } from '../support/truthful.ts'
import { mysqlDatabase, postgresDatabase, sqliteDatabase, type TestDatabase } from '../vendors/databases.ts'

const actions = truthful(database).actions!
const opened = await Promise.all([postgresDatabase(), mysqlDatabase(), sqliteDatabase()])
const databases = opened.filter(each => each !== null).map(each => [each.provider, each] as const)
afterAll(async () => {
  for (const [, each] of databases) await each.close()
})

type Options = NonNullable<Parameters<typeof testContext>[0]>
const begin = (at: TestDatabase, settings: object = {}, options: Options = {}): TestContext =>
  testContext({
    agent: 'database',
    settings: { ...at.settings, ...settings },
    network: { allow: [], literalOrigins: [] },
    ...options,
  })
const run = (action: string, entry: JsonObject, t: TestContext): Promise<AgentResult> => {
  expect(problems(actions[action]!.entry, entry)).toEqual([])
  return actions[action]!.run(entry, t.context as AgentContext<never>)
}
const query = (t: TestContext, sql: string, more: JsonObject = {}) =>
  run('query', { name: 'rows.json', sql, ...more }, t)
const execute = (t: TestContext, sql: string, more: JsonObject = {}) => run('execute', { name: 'it', sql, ...more }, t)
const find = (t: TestContext) => actions.execute!.find!({ name: 'it', sql: 'x' }, t.context as AgentContext<never>)
const fileOf = (t: TestContext, name: string) => readFileSync(join(phaseFolder(t), name), 'utf8')
const numbers = (at: TestDatabase, count: number) =>
  at.provider === 'mysql'
    ? `SELECT seq AS n FROM seq_1_to_${count}`
    : at.provider === 'postgres'
      ? `SELECT n::int FROM generate_series(1, ${count}) n`
      : `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count}) SELECT n FROM s`
const mark = (at: TestDatabase, number: number) => (at.provider === 'postgres' ? `$${number}` : '?')

/** A table of its own for each check, with the receipts beside it. */
async function databaseWithTables() {
  const at = await sqliteDatabase()
  const { database: file } = at.settings as { database: string }
  await at.sql('CREATE TABLE receipts (entry_key varchar(64) PRIMARY KEY, affected bigint)')
  await at.sql('CREATE TABLE items (id int)')
  return { ...at, file, [Symbol.asyncDispose]: at.close }
}

await testAgent({
  file: join(import.meta.dir, '../../agents/database.ts'),
  vendor: databaseWithTables,
  settings: ({ file }) => ({ provider: 'sqlite', database: file, receipts: 'receipts' }),
  examples: {
    query: { entry: { name: 'rows.json', sql: 'SELECT id FROM items WHERE id > :least', params: { least: 1 } } },
    execute: { entry: { name: 'it', sql: 'INSERT INTO items VALUES (?)', params: [7] } },
  },
  badDays: { not_found: ({ file }) => rmSync(file) },
})

describe.each(databases)('%s', (provider, at) => {
  test('rows become JSON, with their columns, number and first items in data', async () => {
    const t = begin(at)
    const { data, text } = await query(t, `${numbers(at, 3)} ORDER BY n DESC`)
    const items = [{ n: 3 }, { n: 2 }, { n: 1 }]
    expect(data).toEqual({ columns: ['n'], items, total: 3, complete: true, truncated: false })
    expect(text).toEndWith(': 3 rows')
    expect(JSON.parse(fileOf(t, 'rows.json'))).toEqual({ items, total: 3, truncated: false })
  })

  test('rows become CSV, where NULL and an empty text stay different', async () => {
    const t = begin(at)
    const sql = `SELECT 1 AS a, 'x,"y"\n' AS b, NULL AS c, '' AS d UNION ALL SELECT 2, 'z', 'w', ' v'`
    const { data } = await query(t, sql, { name: 'rows.csv' })
    expect(fileOf(t, 'rows.csv')).toBe('a,b,c,d\r\n1,"x,""y""\n",,""\r\n2,z,w," v"\r\n')
    expect(data).toMatchObject({ columns: ['a', 'b', 'c', 'd'], total: 2, truncated: false })
  })

  test('no row is a file too', async () => {
    const t = begin(at)
    expect(
      (
        await query(t, `SELECT 1 AS a, 2 AS b ${provider === 'mysql' ? 'FROM DUAL ' : ''}WHERE 1 = 0`, {
          name: 'none.csv',
        })
      ).data,
    ).toMatchObject({ total: 0, truncated: false, items: [] })
    expect(fileOf(t, 'none.csv')).toBe('a,b\r\n')
  })

  test('a limit is said to have cut the rows', async () => {
    const t = begin(at)
    const { data, text } = await query(t, numbers(at, 11), { limit: 10 })
    expect(data).toMatchObject({ total: 10, complete: false, truncated: true })
    expect(text).toEndWith('10 rows, and there are more')
    expect(JSON.parse(fileOf(t, 'rows.json'))).toMatchObject({ total: 10, truncated: true })
    expect((await query(begin(at), numbers(at, 10), { limit: 10 })).data).toMatchObject({
      total: 10,
      complete: true,
      truncated: false,
    })
  })

  test('ten thousand rows are all there, in order', async () => {
    const t = begin(at)
    const { data } = await query(t, `${numbers(at, 10_000)} ORDER BY n`, { name: 'rows.csv' })
    expect(data).toMatchObject({ total: 10_000 })
    const lines = fileOf(t, 'rows.csv').trimEnd().split('\r\n')
    expect(lines.slice(1)).toEqual(Array.from({ length: 10_000 }, (_, index) => String(index + 1)))
  })

  test('values by name and as a list, never as text', async () => {
    const text = `it's "; DROP TABLE x; --`
    const named = await query(begin(at), `SELECT :text AS a, :n + 1 AS b, ':no' AS c, :text AS d -- :no`, {
      params: { text, n: 2 },
    })
    expect(named.data).toMatchObject({ items: [{ a: text, b: 3, c: ':no', d: text }] })
    const listed = await query(begin(at), `SELECT ${mark(at, 1)} AS a`, { params: [text] })
    expect(listed.data).toMatchObject({ items: [{ a: text }] })
  })

  test('names that do not fit are refused before anything is sent', async () => {
    for (const [sql, params, said] of [
      ['SELECT :a', { b: 1 }, 'uses :a, which is not in'],
      ['SELECT 1', { b: 1 }, 'does not use `params.b`'],
      ['SELECT 1; SELECT 2', {}, 'must be a single statement'],
    ] as const) {
      const error = await failureOf(query(begin(at), sql, { params }))
      expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
      expect(error.message).toContain(said)
    }
    expect((await query(begin(at), 'SELECT 1 AS a; -- done')).data).toMatchObject({ total: 1 })
  })

  test('two columns of one name are refused, for a row would lose one', async () => {
    const error = await failureOf(query(begin(at), 'SELECT 1 AS a, 2 AS a'))
    expect(error).toMatchObject({ code: 'invalid_request', hint: 'rename one of them with AS' })
  })

  test('a query cannot write', async () => {
    const table = at.table('kept')
    await at.sql(`CREATE TABLE ${table} (a int)`)
    await at.sql(`INSERT INTO ${table} VALUES (1)`)
    for (const sql of [`DELETE FROM ${table}`, `DROP TABLE ${table}`, `INSERT INTO ${table} VALUES (2) RETURNING a`]) {
      const t = begin(at)
      await failureOf(query(t, sql))
      expect(existsSync(phaseFolder(t)) ? readdirSync(phaseFolder(t)) : []).toEqual([])
    }
    expect(await at.sql(`SELECT count(*) AS n FROM ${table}`)).toHaveLength(1)
    expect(Number((await at.sql(`SELECT count(*) AS n FROM ${table}`))[0]!.n)).toBe(1)
  })

  test('the words of the server, with the place in the statement', async () => {
    const error = await failureOf(
      query(begin(at), 'SELECT 1 AS :a,\n  :b AS c, nope', { params: { a: 1, b: 2 } }).catch(e => Promise.reject(e)),
    )
    expect(error).toMatchObject({ sent: 'no', retryable: false })
    const other = await failureOf(query(begin(at), 'SELECT :b AS b,\n  nope AS c', { params: { b: 2 } }))
    expect(other.message).toContain('nope')
    if (provider === 'postgres') expect(other.message).toContain('(SQLSTATE 42703, line 2, column 3, at "nope AS c")')
    if (provider === 'sqlite') expect(other.message).toContain('line 2, column 3')
    if (provider === 'mysql') expect(other.message).toContain('SQLSTATE 42S22')
  })

  test('a stopped run ends a long query', async () => {
    const long =
      provider === 'postgres'
        ? 'SELECT pg_sleep(60)'
        : provider === 'mysql'
          ? 'SELECT SLEEP(60) AS s'
          : numbers(at, 10_000_000_000).replace('SELECT n FROM', 'SELECT count(*) AS n FROM')
    const controller = new AbortController()
    const t = begin(at, {}, { signal: controller.signal })
    const began = query(t, long)
    setTimeout(() => controller.abort(), 500)
    expect(await failureOf(began)).toMatchObject({ code: 'aborted' })
    if (provider !== 'postgres') return
    // The server is told, too; otherwise this would wait for a minute.
    const active = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'cadre' AND query LIKE '%cadre_rows%' AND state = 'active'`
    while ((await at.sql(active)).length > 0) await Bun.sleep(20)
  })

  test('doctor says which server it is', async () => {
    const found = await database.doctor!(begin(at).context as AgentContext<never>)
    expect(found.missing).toEqual([])
    expect(found.text).toMatch({ postgres: /PostgreSQL \d+/, mysql: /: \d+\.\d+/, sqlite: /SQLite 3/ }[provider])
  })

  describe('execute', () => {
    const items = at.table('items')
    test('writes in a transaction, and says how many rows', async () => {
      await at.sql(`CREATE TABLE ${items} (id int PRIMARY KEY, label varchar(100))`)
      const insert = `INSERT INTO ${items} (id, label) VALUES (:id, :label)`
      const { data, text } = await execute(begin(at), insert, { params: { id: 1, label: 'Grüße 🎉' } })
      expect([data, text.endsWith(': 1 rows written')]).toEqual([{ affected: 1 }, true])
      await execute(begin(at), insert, { params: { id: 2, label: null } })
      const update = await execute(begin(at), `UPDATE ${items} SET label = :l`, { params: { l: 'same' } })
      expect(update.data).toEqual({ affected: 2 })
      const again = await execute(begin(at), `UPDATE ${items} SET label = :l`, { params: { l: 'same' } })
      expect(again.data).toEqual({ affected: 2 })
    })

    test('gives what RETURNING returns', async () => {
      const insert = `INSERT INTO ${items} (id, label) VALUES (:id, 'x') RETURNING id, label`
      const { data } = await execute(begin(at), insert, { params: { id: 10 } })
      expect(data).toMatchObject({ items: [{ id: 10, label: 'x' }], total: 1 })
    })

    test('a refused statement has written nothing, and says so', async () => {
      const error = await failureOf(execute(begin(at), `INSERT INTO ${items} (id) VALUES (10)`))
      expect(error).toMatchObject({ sent: 'no', retryable: false })
    })

    test('without receipts, the database cannot tell', async () => {
      expect((await failureOf(find(begin(at)))).message).toContain('cannot tell')
    })

    test('with receipts, a statement is executed once and found again', async () => {
      const receipts = at.table('receipts')
      await at.sql(`CREATE TABLE ${receipts} (entry_key varchar(64) PRIMARY KEY, affected bigint)`)
      const with_ = (key: string) => begin(at, { receipts }, { key })
      expect(await find(with_('one'))).toBeNull()
      const insert = `INSERT INTO ${items} (id) VALUES (20)`
      const { external } = await execute(with_('one'), insert)
      expect(await find(with_('one'))).toMatchObject({ data: { affected: 1 }, external: external! })
      expect(await find(with_('two'))).toBeNull()
      // The same entry again: the statement would fail if it were executed.
      expect((await execute(with_('one'), insert)).data).toEqual({ affected: 1 })
      // A statement that fails takes its receipt back.
      await failureOf(execute(with_('three'), insert))
      expect(await find(with_('three'))).toBeNull()
    })
  })
})

const at = (provider: string) => databases.find(([name]) => name === provider)?.[1]

describe.skipIf(!at('postgres'))('forms of PostgreSQL', () => {
  test('each is exact', async () => {
    const sql = `SELECT 1::int2 AS i2, 9007199254740993::int8 AS big, 7::int8 AS small,
      12345678901234567890.10::numeric AS dec, date '2026-01-31' AS d, timestamp '2026-01-31 10:00:00.123456' AS ts,
      timestamptz '2026-01-31 10:00:00.5+02' AS tz, 'infinity'::timestamptz AS never, '{"a":[1,null]}'::jsonb AS j,
      '\\xdeadbeef'::bytea AS b, ARRAY[1,2,NULL] AS l, ARRAY['a','b"c\\d,}',NULL,'NULL',''] AS t,
      ARRAY[[1,2],[3,4]] AS m, '{}'::int[] AS e, '[2:3]={7,8}'::int[] AS r, ARRAY[1.10::numeric] AS nl,
      true AS yes, 1.5::float8 AS f, 'NaN'::float8 AS nan, NULL AS nil, 'x'::text AS txt,
      '550e8400-e29b-41d4-a716-446655440000'::uuid AS u, interval '1 day 2 hours' AS iv, ARRAY[true] AS bl,
      ARRAY['{"a":1}'::jsonb] AS jl`
    const { data } = await query(begin(at('postgres')!), sql)
    expect((data as { items: unknown[] }).items[0]).toEqual({
      i2: 1,
      big: '9007199254740993',
      small: 7,
      dec: '12345678901234567890.10',
      d: '2026-01-31',
      ts: '2026-01-31T10:00:00.123456',
      tz: '2026-01-31T08:00:00.5Z',
      never: 'infinity',
      j: { a: [1, null] },
      b: '3q2+7w==',
      l: [1, 2, null],
      t: ['a', 'b"c\\d,}', null, 'NULL', ''],
      m: [
        [1, 2],
        [3, 4],
      ],
      e: [],
      r: [7, 8],
      nl: ['1.10'],
      yes: true,
      f: 1.5,
      nan: 'NaN',
      nil: null,
      txt: 'x',
      u: '550e8400-e29b-41d4-a716-446655440000',
      iv: '1 day 02:00:00',
      bl: [true],
      jl: [{ a: 1 }],
    })
  })

  test('values of each kind are taken', async () => {
    const sql = `SELECT 2 = ANY(:list::int[]) AS l, :texts::text[] AS t, :object::jsonb AS o, :rows::jsonb AS r,
      :yes::bool AS y, :none::text AS n, date '2026-01-02' > :day AS d, :big::int8 AS b, '{{1}}'::int[] AS a, $$:x$$ AS q`
    const params = {
      ...{ list: [1, 2], texts: ['a"b', null, 'c,d'], object: { a: [1] }, rows: [{ a: 1 }], yes: true, none: null },
      ...{ day: '2026-01-01', big: '9007199254740993' },
    }
    expect((await query(begin(at('postgres')!), sql, { params })).data).toMatchObject({
      items: [
        {
          ...{ l: true, t: ['a"b', null, 'c,d'], o: { a: [1] }, r: [{ a: 1 }], y: true, n: null, d: true },
          ...{ b: '9007199254740993', a: [[1]], q: ':x' },
        },
      ],
    })
  })
})

describe.skipIf(!at('mysql'))('forms of MySQL', () => {
  test('each is as exact as the client', async () => {
    const sql = `SELECT CAST(9007199254740993 AS SIGNED) AS big, CAST(7 AS UNSIGNED) AS small, CAST(1.10 AS DECIMAL(9,2)) AS d,
      CAST('2026-01-31' AS DATE) AS day, CAST('2026-01-31 10:00:00.5' AS DATETIME(3)) AS ts, x'deadbeef' AS b, NULL AS nil,
      CAST(1.5 AS DOUBLE) AS f, FROM_UNIXTIME(0) AS epoch, 'it\\'s :no' AS q`
    expect((await query(begin(at('mysql')!), sql)).data).toMatchObject({
      items: [
        {
          ...{ big: '9007199254740993', small: 7, d: '1.10', day: '2026-01-31', ts: '2026-01-31T10:00:00.500' },
          ...{ b: '3q2+7w==', nil: null, f: 1.5, epoch: '1970-01-01T00:00:00', q: "it's :no" },
        },
      ],
    })
  })

  test('more rows than fit in memory are refused with what to do', async () => {
    expect(await failureOf(query(begin(at('mysql')!), 'SELECT 1', { limit: 100_001 }))).toMatchObject({
      code: 'invalid_request',
      sent: 'no',
    })
  })
})

test('forms of SQLite', async () => {
  const sql = `SELECT 9007199254740993 AS big, 7 AS small, 1.5 AS f, x'deadbeef' AS b, NULL AS nil, 9e999 AS inf, :o AS o, :y AS y`
  const { data } = await query(begin(at('sqlite')!), sql, { params: { o: { a: 1 }, y: true } })
  const item = {
    big: '9007199254740993',
    small: 7,
    f: 1.5,
    b: '3q2+7w==',
    nil: null,
    inf: 'Infinity',
    o: '{"a":1}',
    y: 1,
  }
  expect(data).toMatchObject({ items: [item] })
})

test.each([
  ['postgres', String.raw`SELECT E'\':a', $x$ :a $x$, ":a", a::text, b[1:2] /* :a */`],
  ['postgres', String.raw`SELECT '\', ':a'`],
  ['mysql', String.raw`SELECT '\':a', "\":a", ${'`:a`'} # :a`],
  ['sqlite', "SELECT ':a', [:a], `:a` -- :a"],
] as const)('%s: a colon in quotes and comments is text: %s', (provider, sql) => {
  expect(statementOf('x', provider, sql, {}).text).toBe(sql)
})

describe('without an answer', () => {
  const settings = {
    provider: 'postgres',
    host: '127.0.0.1',
    database: 'x',
    user: 'u',
    password: 'canary-of-the-password',
  }
  const silent = { ...at('sqlite')!, settings }

  test('a server that is not there', async () => {
    const error = await failureOf(query(begin(silent, { port: 1 }), 'SELECT 1'))
    expect(error).toMatchObject({ code: 'network', retryable: true, sent: 'no' })
    expect(error.hint).toContain('agents.database.port')
  })

  test('a metadata service, and a host without address', async () => {
    for (const [host, code] of [
      ['169.254.169.254', 'refused'],
      ['nowhere.invalid', 'dns'],
    ] as const) {
      expect(
        await failureOf(execute(begin(silent, { host }, { signal: AbortSignal.timeout(5_000) }), 'SELECT 1')),
      ).toMatchObject({ sent: 'no' })
      expect([code]).toContain(code)
    }
  })

  test('settings that lead nowhere', async () => {
    const gone = begin(silent, { provider: 'sqlite', database: join(folder(), 'gone.db') })
    expect((await failureOf(query(gone, 'SELECT 1'))).message).toContain('unable to open')
  })
})

test.each([
  [{ url: 'https://acme.test' }, 'url', 'must be the address of a database: write it as postgres://'],
  [{ url: 'postgres://me:100%@acme.test/db' }, 'url', 'with %25 for a % in the password'],
  [{ provider: 'sqlite', database: 'data.db' }, 'database', 'must be a whole path for SQLite: write it as /path'],
  [{ host: '-acme' }, 'host', 'write it without the dash'],
  [{ ca_file: '/nowhere/ca.pem' }, 'ca_file', 'is /nowhere/ca.pem, where there is no file: write the path of'],
])('%j is judged, with what to write', (given, key, words) => {
  const found = Object.entries(database.check!(given)).filter(([, problem]) => problem)
  expect(found).toEqual([[key, expect.stringContaining(words)]])
})

test('the database may be named by the url', () => {
  expect(database.missing!({ url: 'postgres://acme.test/db' })).toEqual([])
  expect(database.missing!({ url: 'postgres://acme.test' })).toEqual(['database'])
  expect(database.missing!({ host: 'acme.test' })).toEqual(['database'])
  expect(database.missing!({})).toEqual(['url'])
})

describe.skipIf(!at('postgres'))('a connection that breaks', () => {
  /** A way to the server that is cut when `cut` says so of what the client sends. */
  async function proxy(cut: (sent: string) => boolean) {
    const { hostname, port } = new URL(String(at('postgres')!.settings.url))
    const sockets = new Set<Socket>()
    const server = createServer(client => {
      const upstream = dial(Number(port || 5432), hostname)
      for (const socket of [client, upstream]) {
        sockets.add(socket)
        socket.on('error', () => {})
      }
      client.on('data', data => {
        upstream.write(data)
        // The server does what it was told, and its answer is lost.
        if (cut(data.toString('latin1'))) client.destroy()
      })
      upstream.on('data', data => client.writable && client.write(data))
      client.on('close', () => setTimeout(() => upstream.destroy(), 200))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = server.address() as { port: number }
    return {
      port: address.port,
      close: () => {
        for (const socket of sockets) socket.destroy()
        server.close()
      },
    }
  }

  test.each([
    ['before the commit, nothing was written', /INSERT/, 'no', 0],
    ['at the commit, nobody knows', /COMMIT/, 'unknown', 1],
  ] as const)('%s', async (_, when, sent, rows) => {
    const table = at('postgres')!.table(`broken_${rows}`)
    await at('postgres')!.sql(`CREATE TABLE ${table} (a int)`)
    const way = await proxy(text => when.test(text))
    const url = new URL(String(at('postgres')!.settings.url))
    url.port = String(way.port)
    const t = begin(at('postgres')!, { url: url.href })
    expect(await failureOf(execute(t, `INSERT INTO ${table} VALUES (1)`))).toMatchObject({ code: 'network', sent })
    way.close()
    await Bun.sleep(300)
    expect(await at('postgres')!.sql(`SELECT * FROM ${table}`)).toHaveLength(rows)
  })

  test('in a run, the doubt is settled by receipts', async () => {
    const [table, receipts] = [at('postgres')!.table('settled'), at('postgres')!.table('settled_receipts')]
    await at('postgres')!.sql(`CREATE TABLE ${table} (a int)`)
    await at('postgres')!.sql(`CREATE TABLE ${receipts} (entry_key varchar(64) PRIMARY KEY, affected bigint)`)
    let cuts = 1
    const way = await proxy(text => /COMMIT/.test(text) && cuts-- > 0)
    const url = new URL(String(at('postgres')!.settings.url))
    url.port = String(way.port)
    const target_entries = [{ name: 'one', sql: `INSERT INTO ${table} VALUES (1)` }]
    const phase = { action: 'execute', target_entries }
    const outcome = await outcomeOf({ agent: database, name: 'database', settings: { url: url.href, receipts }, phase })
    way.close()
    expect(outcome.state).toBe('completed')
    expect(await at('postgres')!.sql(`SELECT * FROM ${table}`)).toHaveLength(1)
  })
})

test('a team with a template in `sql` is refused, with where the value belongs', async () => {
  const catalogue = await discover({ home: folder() })
  const agents = { get: (name: string) => catalogue.get(name), names: () => catalogue.names() }
  const team = (sql: string) =>
    new Map([['team.yml', JSON.stringify({ name: '@local/x', version: '1.0.0', phases: [phase(sql)] })]])
  const phase = (sql: string) => ({ name: 'p', agent: 'database', action: 'query', sources: [{ name: 'x', sql }] })
  const found = await loadBundle(team("SELECT '{{ run.id }}'"), { agents }).then(() => [], problemsOf)
  expect(found.map(({ message }) => message)).toEqual([
    'templates are not read here: put the value into `params`, and `:name` here',
  ])
  expect(await loadBundle(team("SELECT '{{{{1}}'::int[]"), { agents })).toBeDefined()
})

test('a query may be the first thing that a run does, when the run has no folder yet', async () => {
  const [, file] = databases.find(([provider]) => provider === 'sqlite')!
  const t = begin(file, {}, { stateDir: join(folder(), 'run') })
  expect((await query(t, 'SELECT 1 AS n')).data).toMatchObject({ items: [{ n: 1 }] })
})
