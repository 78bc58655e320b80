// A list as a value of a statement: as many values in IN (…), an array or JSON where the database has such a type, and
// an error everywhere else, because a list that became one text would match nothing, and NOT IN everything.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Json, JsonObject } from '../../lib/json.ts'
import { failureOf } from '../support/failure.ts'
import { execute, query } from '../support/query.ts'
import { mysqlDatabase, postgresDatabase, sqliteDatabase } from '../vendors/databases.ts'

const opened = await Promise.all([postgresDatabase(), mysqlDatabase(), sqliteDatabase()])
const databases = opened.filter(each => each !== null).map(each => [each.provider, each] as const)
afterAll(async () => {
  for (const [, each] of databases) await each.close()
})

describe.each(databases)('%s', (provider, at) => {
  const isPostgres = provider === 'postgres'
  let table: string
  beforeEach(async () => {
    table = at.table(`t_${crypto.randomUUID().slice(0, 8)}`)
    const [text, json] = provider === 'mysql' ? ['varchar(40)', 'json'] : ['text', isPostgres ? 'jsonb' : 'json']
    const array = isPostgres ? ', numbers int[]' : ''
    await at.sql(`CREATE TABLE ${table} (n int, s ${text}, doc ${json}${array})`)
    await at.sql(`INSERT INTO ${table} (n, s) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (NULL, NULL)`)
  })

  const left = async () => (await at.sql(`SELECT s FROM ${table} ORDER BY n`)).map(({ s }) => s).filter(Boolean)
  const found = async (where: string, params: JsonObject) => {
    const { data } = await query(at, `SELECT n FROM ${table} WHERE ${where} ORDER BY n`, { params })
    return (data as { items: { n: number | null }[] }).items.map(({ n }) => n)
  }
  const refused = async (work: Promise<unknown>) => {
    const error = await failureOf(work)
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no', retryable: false })
    return `${error.message} ${error.hint}`
  }

  test('DELETE … NOT IN keeps what the list has', async () => {
    const { data } = await execute(at, `DELETE FROM ${table} WHERE s NOT IN (:keep)`, { params: { keep: ['a', 'c'] } })
    expect(data).toMatchObject({ affected: 1 })
    expect(await left()).toEqual(['a', 'c'])
  })

  test('a list in IN is as many values, of each kind, and may be used twice', async () => {
    expect(await found('n IN (:list)', { list: [1, 3] })).toEqual([1, 3])
    expect(await found('n in ( /* these */ :list )', { list: [2] })).toEqual([2])
    expect(await found('n NOT IN (:list)', { list: [1, 3] })).toEqual([2])
    expect(
      await found('n IN (:list) AND s IN (:texts) AND n > :least OR n IN (:list) AND s = :one', {
        ...{ list: [1, 2, 3], texts: ["it's", 'b', 'c'], least: 1, one: 'a' },
      }),
    ).toEqual([1, 2, 3])
    expect(await found('s IN (:texts)', { texts: ["x'); DROP TABLE y; --", 'a', null] })).toEqual([1])
    expect(await found('n IN (:one)', { one: 2 })).toEqual([2])
    expect(await found('n IN (:list)', { list: Array.from({ length: 5_000 }, (_, at) => at + 3) })).toEqual([3])
  })

  test('an empty list: nothing is in it, and everything is not, also NULL', async () => {
    expect(await found('n IN (:none)', { none: [] })).toEqual([])
    expect(await found('s IN (:none) OR n = :n', { none: [], n: 1 })).toEqual([1])
    expect((await found('n NOT IN (:none)', { none: [] })).toSorted()).toEqual([1, 2, 3, null])
    expect((await found('s NOT IN (:none) AND (n IS NULL OR n = :n)', { none: [], n: 1 })).toSorted()).toEqual([
      1,
      null,
    ])
    expect(await found('NOT n IN (:none) AND n = 2', { none: [] })).toEqual([2])
  })

  test('a null under NOT IN is an error, because it would match nothing', async () => {
    expect(await refused(found('n NOT IN (:list)', { list: [1, null] }))).toContain('null')
    await refused(execute(at, `DELETE FROM ${table} WHERE s NOT IN (:list)`, { params: { list: [null] } }))
    expect(await left()).toEqual(['a', 'b', 'c'])
  })

  test.each<[string, Json]>([
    ['s = :list', ['a', 'b']],
    ['s IN (:list, s)', ['a', 'b']],
    ['s LIKE :list', ['a']],
    ['(n, s) IN (:list)', [[1, 'a']]],
    ['s IN (:list)', [{ a: 1 }]],
    ['n > :list', []],
    ['n BETWEEN :list AND 3', [1]],
  ])('%s with the list %j is refused', async (where, list) => {
    const said = await refused(found(where, { list }))
    expect(said).toContain('list')
    await refused(execute(at, `DELETE FROM ${table} WHERE ${where}`, { params: { list } }))
    expect(await left()).toEqual(['a', 'b', 'c'])
  })

  test('a list is no text of a column, of a result or of a limit', async () => {
    await refused(execute(at, `INSERT INTO ${table} (n, s) VALUES (9, :list)`, { params: { list: ['x', 'y'] } }))
    await refused(execute(at, `UPDATE ${table} SET s = :list WHERE n = 1`, { params: { list: ['x', 'y'] } }))
    await refused(query(at, 'SELECT :list AS l', { params: { list: [1] } }))
    const mark = isPostgres ? '$1' : '?'
    await refused(query(at, `SELECT ${mark} AS l`, { params: [[1, 2]] }))
    await refused(query(at, `SELECT n FROM ${table} WHERE n IN (${mark})`, { params: [[1, 2]] }))
    expect(await left()).toEqual(['a', 'b', 'c'])
  })

  test('a list fits a column of JSON', async () => {
    const list = [1, 'two', { three: [3] }]
    await execute(at, `INSERT INTO ${table} (n, doc) VALUES (:n, :list)`, { params: { n: 7, list } })
    await execute(at, `UPDATE ${table} SET s = :s, doc = :list WHERE n = 1`, { params: { s: 'x', list: [] } })
    const rows = await at.sql(`SELECT n, doc FROM ${table} WHERE n IN (1, 7) ORDER BY n`)
    const docs = rows.map(({ doc }) => (typeof doc === 'string' ? JSON.parse(doc) : doc))
    expect(docs).toEqual([[], list])
  })

  test('more values than a statement takes', async () => {
    const list = Array.from({ length: 70_000 }, (_, at) => at)
    expect(await refused(found('n IN (:list)', { list }))).toContain('70000')
  })

  if (isPostgres) {
    test('= ANY and <> ALL take one array, and so do columns of arrays', async () => {
      expect(await found('n = ANY(:list)', { list: [1, 3, null] })).toEqual([1, 3])
      expect(await found('s = any (:list)', { list: ['a', 'c,"d'] })).toEqual([1])
      expect(await found('n = ANY(:list)', { list: [] })).toEqual([])
      expect(await found('n <> ALL(:list)', { list: [1] })).toEqual([2, 3])
      expect(await found('n = ANY(:list::int[]) AND n IN (:list)', { list: [1, 2] })).toEqual([1, 2])
      expect(await refused(found('n <> ALL(:list)', { list: [1, null] }))).toContain('null')
      expect(await found('n = ANY($1)', [[2]] as never)).toEqual([2])
      await execute(at, `UPDATE ${table} SET numbers = :list WHERE n = :n`, { params: { n: 1, list: [4, 5] } })
      expect(await at.sql(`SELECT numbers[2] AS b FROM ${table} WHERE n = 1`)).toEqual([{ b: 5 }])
      // It left no prepared statement behind.
      await execute(at, `INSERT INTO ${table} (numbers, doc) VALUES (:list, :doc)`, {
        params: { list: [6], doc: [6] },
      })
      await execute(at, `CREATE TABLE ${table}_2 AS SELECT name FROM pg_prepared_statements`, {})
      expect(await at.sql(`SELECT * FROM ${table}_2`)).toEqual([])
    })
  } else {
    test('ANY is an error that names IN', async () => {
      expect(await refused(found('n = ANY(:list)', { list: [1] }))).toContain('IN (:list)')
      expect(await refused(found('n <> ALL (:list)', { list: [1] }))).toContain('NOT IN (:list)')
    })

    test('a function of JSON takes a list', async () => {
      const { data } = await query(at, 'SELECT json_extract(:list, :path) AS x', {
        params: { list: [1, 7], path: '$[1]' },
      })
      expect(Number((data as { items: { x: unknown }[] }).items[0]!.x)).toBe(7)
    })

    test('a column of JSON is found by its place, its name or its quotes', async () => {
      const quote = (name: string) => (provider === 'mysql' ? `\`${name}\`` : `"${name}"`)
      await execute(at, `INSERT INTO ${quote(table)} VALUES (8, lower('X'), :list), (9, 'y', :list)`, {
        params: { list: [8] },
      })
      await execute(at, `UPDATE ${quote(table)} SET ${quote('doc')} = :list, n = 10 WHERE n = 8`, {
        params: { list: [10] },
      })
      const rows = await at.sql(`SELECT doc FROM ${table} WHERE n IN (9, 10) ORDER BY n`)
      expect(rows.map(({ doc }) => (typeof doc === 'string' ? JSON.parse(doc) : doc))).toEqual([[8], [10]])
      await refused(execute(at, `INSERT INTO ${table} VALUES (8, :list, NULL)`, { params: { list: [8] } }))
      await at.sql(`CREATE UNIQUE INDEX ${table}_n ON ${table} (n)`)
      const again = provider === 'mysql' ? 'ON DUPLICATE KEY UPDATE' : 'ON CONFLICT (n) DO UPDATE SET'
      const insert = `INSERT INTO ${table} (n, doc) VALUES (9, :a) ${again}`
      await execute(at, `${insert} doc = :b, s = :s`, { params: { a: [1], b: [2], s: 'x' } })
      await execute(at, `${insert} s = :s, doc = :b`, { params: { a: [1], b: [3], s: 'x' } })
      const [row] = await at.sql(`SELECT doc FROM ${table} WHERE n = 9`)
      expect(typeof row!.doc === 'string' ? JSON.parse(row!.doc) : row!.doc).toEqual([3])
      await refused(execute(at, `${insert} s = :b`, { params: { a: [1], b: [3] } }))
      // The column of another table may have another type.
      const other = `UPDATE ${table} SET other.doc = :list`
      await refused(execute(at, other, { params: { list: [1] } }))
    })
  }
})
