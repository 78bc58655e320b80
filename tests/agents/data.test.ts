// The agent data: lists that are filtered, reshaped, split, joined, compared and converted, from values and from files.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import data from '../../agents/data.ts'
import type { JsonObject } from '../../lib/json.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { csvLine, recordsOfCsv, rowsOf } from '../../lib/vendors/records/csv.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { randomFrom } from '../support/random.ts'
import { truthful } from '../support/truthful.ts'

const { actions } = truthful(data) as Required<typeof data>
const people = [
  { name: 'Ada', days: 3, home: { city: 'London' } },
  { name: 'Grace', days: 9, home: null },
  { name: 'Linus', days: 12 },
]
const csv = 'name,days\r\nAda,3\r\nGrace,9\r\n'

await testAgent({
  file: join(import.meta.dir, '../../agents/data.ts'),
  vendor: () => ({ [Symbol.dispose]() {} }),
  settings: () => ({}),
  badDays: {},
  examples: {
    filter: { entry: { name: 'a.json', items: people, where: 'item.days > 5' } },
    pick: { entry: { name: 'a.json', items: people, fields: ['name'] } },
    split: { entry: { name: 'a.json', items: people, count: 2 } },
    join: { entry: { name: 'a.json', files: ['one.json', 'two.csv'] }, files: { 'one.json': '[1]', 'two.csv': csv } },
    template: { entry: { name: 'a.txt', template: 't.txt', items: people }, files: { 't.txt': '{{ item.name }}\n' } },
    csv_to_json: { entry: { name: 'a.json', file: 'a.csv' }, files: { 'a.csv': csv } },
    json_to_csv: { entry: { name: 'a.csv', items: people, columns: ['name', 'home.city'] } },
    diff: { entry: { name: 'a.json', key: 'item.name', before: people.slice(0, 2), after: people.slice(1) } },
  },
})

/** Runs an action with files in the workspace; the text of what it wrote, by name, stands beside its result. */
async function run(
  action: string,
  entry: JsonObject,
  files: Record<string, string> = {},
  at: TestContext = testContext(),
) {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(at.workspace, name), content)
  const result = await actions[action]!.run({ name: 'out.json', ...entry }, at.context)
  const folder = phaseFolder(at)
  const written = Object.fromEntries(readdirSync(folder).map(name => [name, readFileSync(join(folder, name), 'utf8')]))
  return { ...result, data: result.data as JsonObject, written, out: written[String(entry.name ?? 'out.json')]! }
}
const failure = (action: string, entry: JsonObject, files?: Record<string, string>): Promise<string> =>
  run(action, entry, files).then(
    () => 'no error',
    error => error.message,
  )

describe('lists', () => {
  test('are filtered by what an expression says of the item, its index and the inputs of the entry', async () => {
    const entry = { items: people, where: 'item.days > inputs.most && index < 2', inputs: { most: 5 } }
    const { data, out } = await run('filter', entry)
    expect(data).toEqual({ items: [people[1]!], total: 1, truncated: false })
    expect(JSON.parse(out)).toEqual([people[1]])
    expect(JSON.parse((await run('filter', { items: [], where: 'true' })).out)).toEqual([])
  })

  test('get other fields', async () => {
    const fields = { who: 'item.name', city: "or(item.home.city, '-')", at: 'index' }
    expect((await run('pick', { items: people, fields, where: 'item.days < 10' })).data.items).toEqual([
      { who: 'Ada', city: 'London', at: 0 },
      { who: 'Grace', city: '-', at: 1 },
    ])
    expect((await run('pick', { items: people, fields: ['name', 'home.city'] })).data.items).toEqual([
      { name: 'Ada', 'home.city': 'London' },
      { name: 'Grace', 'home.city': null },
      { name: 'Linus', 'home.city': null },
    ])
  })

  test('are split into files in order, whose names are sorted, and joined again', async () => {
    const items = Array.from({ length: 25 }, (_, n) => n)
    const at = testContext()
    const { data, written } = await run('split', { items, count: 10, name: 'part.json' }, {}, at)
    const files = data.files as { name: string; path: string; items: number }[]
    expect(files.map(({ items }) => items)).toEqual([10, 10, 5])
    expect(JSON.parse(written['part-0002.json']!)).toEqual(items.slice(10, 20))
    const paths = files.map(({ path }) => path)
    expect((await run('join', { files: paths }, {}, at)).data.items).toEqual(items)
    expect((await run('join', { lists: [[1], [], [2, 3]] })).data.items).toEqual([1, 2, 3])
  })

  test('are compared by key', async () => {
    const before = [{ id: 1, n: 1 }, { id: 2, n: { a: 1, b: 2 } }, { id: 3 }]
    const after = [{ id: 4 }, { n: { b: 2, a: 1 }, id: 2 }, { id: 1, n: 2 }]
    const { data, text } = await run('diff', { key: 'item.id', before, after })
    expect(data).toEqual({
      items: [
        { change: 'added', key: 4, after: { id: 4 } },
        { change: 'changed', key: 1, before: { id: 1, n: 1 }, after: { id: 1, n: 2 } },
        { change: 'removed', key: 3, before: { id: 3 } },
      ],
      ...{ total: 3, truncated: false, added: 1, removed: 1, changed: 1 },
    })
    expect(text).toBe('1 added, 1 removed, 1 changed')
    const files = { 'a.csv': 'id,n\n1,1\n', 'b.jsonl': '{"id":"1","n":"2"}\n' }
    const entry = { key: 'item.id', before_file: 'a.csv', after_file: 'b.jsonl' }
    expect((await run('diff', entry, files)).text).toBe('0 added, 0 removed, 1 changed')
    expect(await failure('diff', { key: 'item', before: [1, 1], after: [] })).toContain(
      'two items of `before` have the key 1',
    )
    expect(await failure('diff', { key: 'item', before: [], after: ['a', 'a'] })).toContain(
      'of `after` have the key "a"',
    )
    expect(await failure('diff', { key: 'item', before: [{}], after: [] })).toContain('neither a text nor a number: {}')
  })

  test('an expression that is wrong for an item says for which, and names nothing of the run', async () => {
    expect(await failure('filter', { items: people, where: 'item.name' })).toContain(
      '`where` must give true or false, but for item 0 it gave "Ada"',
    )
    expect(await failure('filter', { items: people, where: "item.home.city == 'x'" })).toContain('item 1: ')
    for (const where of ['phases.a.state == "x"', 'run.id == ""', 'secrets.x == ""', 'inputs.none == 1']) {
      expect([where, await failure('filter', { items: people, where })]).not.toEqual([where, 'no error'])
    }
    expect(await failure('filter', { items: people, where: 'secrets.x == ""' })).toContain(
      'only `item`, `index` and `inputs` can be used here',
    )
  })

  test('a long list has its first items in data, and all in the file', async () => {
    const items = Array.from({ length: 1_000 }, (_, n) => ({ n, text: 'x'.repeat(1_000) }))
    const { data, out } = await run('filter', { items, where: 'true' })
    const shown = data.items as JsonObject[]
    expect([data.total, data.truncated, shown.length < 400, shown.at(-1)]).toEqual([
      1_000,
      true,
      true,
      items[shown.length - 1]!,
    ])
    expect(JSON.parse(out)).toEqual(items)
  })
})

describe('files', () => {
  test('have the form that their names say', async () => {
    const files = {
      'a.csv': csv,
      'a.jsonl': '{"name":"Ada"}\n\n{"name":"Grace"}',
      'a.json': '{"data":{"list":[{"name":"Ada"}]}}',
    }
    const names = async (entry: JsonObject) => (await run('pick', { ...entry, fields: ['name'] }, files)).data.items
    expect(await names({ file: 'a.csv' })).toEqual([{ name: 'Ada' }, { name: 'Grace' }])
    expect(await names({ file: 'a.jsonl' })).toEqual([{ name: 'Ada' }, { name: 'Grace' }])
    expect(await names({ file: 'a.json', at: 'data.list' })).toEqual([{ name: 'Ada' }])
    const lines = await run('filter', { name: 'o.ndjson', file: 'a.csv', where: "item.days == '9'" }, files)
    expect(lines.out).toBe('{"name":"Grace","days":"9"}\n')
    expect((await run('filter', { name: 'o.csv', file: 'a.csv', where: 'true' }, files)).out).toBe(csv)
  })

  test('that are no list are refused with what to write', async () => {
    const files = { 'a.json': '{"tasks":[]}', 'b.json': '{', 'c.jsonl': '{}\n{', 'd.csv': 'a\n\xff' }
    const why = (file: string, more: object = {}) => failure('filter', { file, where: 'true', ...more }, files)
    expect(await why('a.json')).toBe('[agent] a.json: is no list')
    expect(await why('a.json', { at: 'none' })).toBe('[agent] a.json: has no list at none')
    expect(await why('b.json')).toBe('[agent] b.json: is not JSON')
    expect(await why('c.jsonl')).toBe('[agent] c.jsonl: line 2 is not JSON')
    expect(await why('none.json')).toContain('none.json')
    expect(await why('../secret.json')).not.toBe('no error')
    const at = testContext()
    writeFileSync(join(at.workspace, 'l.csv'), Buffer.from([0x61, 0x0a, 0xff]))
    expect(await run('filter', { file: 'l.csv', where: 'true' }, {}, at).catch(error => error.message)).toContain(
      'is not UTF-8 text',
    )
  })

  test('of many records are read and written in little memory', async () => {
    const at = testContext()
    const file = join(at.workspace, 'large.csv')
    const writer = Bun.file(file).writer()
    writer.write('id,text\n')
    for (let n = 0; n < 200_000; n++) writer.write(`${n},${'x'.repeat(300)}\n`)
    await writer.end()
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss)
    }, 5)
    const before = process.memoryUsage().rss
    const { data } = await actions
      .filter!.run({ name: 'o.jsonl', file: 'large.csv', where: "item.id.endsWith('7')" }, at.context)
      .finally(() => clearInterval(timer))
    expect((data as JsonObject).total).toBe(20_000)
    // The file has 61 MB; other work had its turns meanwhile.
    expect([most > 0, most - before < 150 * 1024 * 1024]).toEqual([true, true])
  }, 60_000)

  test('an abort ends the work', async () => {
    const controller = new AbortController()
    const at = testContext({ signal: controller.signal })
    writeFileSync(join(at.workspace, 'a.csv'), `id\n${'1\n'.repeat(500_000)}`)
    setTimeout(() => controller.abort(), 20)
    const work = actions.filter!.run({ name: 'o.jsonl', file: 'a.csv', where: 'true' }, at.context)
    expect(
      await work.then(
        () => 'done',
        () => 'ended',
      ),
    ).toBe('ended')
  })
})

describe('texts', () => {
  test('of a template, once or for each item', async () => {
    const files = {
      't.md': '- {{ item.name }}: {{ item.days * 2 }} {{ index }}{{ inputs.end }}\n',
      'u.md': 'From {{ inputs.who }}, {{ inputs.list }}\n',
    }
    const each = await run(
      'template',
      { name: 'o.md', template: 't.md', items: people.slice(0, 2), inputs: { end: '!' } },
      files,
    )
    expect(each.out).toBe('- Ada: 6 0!\n- Grace: 18 1!\n')
    const once = await run(
      'template',
      { name: 'o.md', template: 'u.md', inputs: { who: 'A {{ item }}', list: [1] } },
      files,
    )
    expect(once.out).toBe('From A {{ item }}, [1]\n')
    expect((await run('template', { name: 'o.md', text: 'as it is {{ }}' })).out).toBe('as it is {{ }}')
    expect(await failure('template', { template: 't.md', inputs: {} }, files)).toContain('inputs.end')
  })
})

describe('CSV', () => {
  async function* pieces(text: string, size: number) {
    for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size)
  }
  const read = async (text: string, size = 1_000, delimiter?: string) =>
    (await Array.fromAsync(rowsOf(pieces(text, size), delimiter))).map(({ fields }) => fields)

  test.each([
    [
      'a,b\r\n1,2\r\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'a,b\n1,2',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    ['a\r1\r', [['a'], ['1']]],
    ['\uFEFFa\n1\n', [['a'], ['1']]],
    [
      '"a","b ""c"" d"\n"x\r\ny",\n',
      [
        ['a', 'b "c" d'],
        ['x\r\ny', ''],
      ],
    ],
    [',\n', [['', '']]],
    ['""\n\n"a"', [[''], ['a']]],
    ['', []],
    ['\n\n', []],
    ['🎉,ü\n', [['🎉', 'ü']]],
  ])('%p is read, in whatever pieces it comes', async (text, rows) => {
    for (const size of [1, 2, 3, 1_000]) expect(await read(text, size)).toEqual(rows)
  })

  test.each([
    ['a,b\n1', 'line 2 has 1 fields, but the first line names 2 columns'],
    ['a,a\n', 'line 1 names the column "a" twice'],
    ['a,\n', 'line 1 has a column without a name'],
    ['a\n"b\nc', 'line 3 is the last one, and a quote is not closed'],
    ['a\n\n"b"c\n', 'line 3 has text behind a field in quotes'],
    ['a\nb"c"\n', 'line 2 has a quote inside a field without quotes'],
    [`a\n"${'x'.repeat(1024 * 1024)}`, 'line 2 belongs to a record of more than 1 MiB: a quote may not be closed'],
  ])('%p is refused with its line', async (text, message) => {
    expect(await Array.fromAsync(recordsOfCsv(rowsOf(pieces(text, 7)))).catch(error => error.message)).toBe(message)
  })

  test('what is written is read as it was', async () => {
    const random = randomFrom(7)
    const part = () => ['a', '"', ',', ';', '\r', '\n', ' ', '', 'ü', '🎉'][Math.floor(random() * 10)]!
    for (let n = 0; n < 300; n++) {
      const fields = Array.from({ length: 1 + Math.floor(random() * 4) }, () => part() + part() + part())
      const delimiter = n % 2 === 0 ? ',' : ';'
      expect(await read(csvLine(fields, delimiter), 1 + (n % 5), delimiter)).toEqual([fields])
    }
  })

  test('is made of objects and made into objects', async () => {
    const items = [
      { a: 1, b: null, c: { d: [true] } },
      { c: 'x;"y"', a: 'z' },
    ]
    expect((await run('json_to_csv', { name: 'o.csv', items })).out).toBe(
      'a,b,c\r\n1,,"{""d"":[true]}"\r\nz,,"x;""y"""\r\n',
    )
    const other = await run('json_to_csv', { name: 'o.txt', items, columns: ['c.d', 'a'], delimiter: ';' })
    expect(other.out).toBe('c.d;a\r\n[true];1\r\n;z\r\n')
    expect(await failure('json_to_csv', { items: [{ a: 1 }, { a: 1, b: 2 }] })).toContain(
      'item 1 has the field b, which the first one lacks',
    )
    expect(await failure('json_to_csv', { items: [1] })).toContain('item 0 is no object')
    const odd = 'a;__proto__\n1;2\n'
    const { out } = await run('csv_to_json', { file: 'a.txt', delimiter: ';' }, { 'a.txt': odd })
    expect(out).toBe('[\n{"a":"1","__proto__":"2"}\n]\n')
  })
})

describe('in a team', () => {
  const check = async (action: string, entry: object) => {
    const phase = { name: 'p', agent: 'data', action, sources: [{ name: 'o.json', ...entry }] }
    const text = JSON.stringify({
      name: '@local/a',
      version: '1.0.0',
      inputs: [{ name: 'x' }, { name: 'o', type: 'object' }],
      phases: [phase],
    })
    const agents = { get: () => data, names: () => ['data'] }
    return loadBundle(new Map([['team.yml', text]]), { agents }).then(
      () => [],
      error => problemsOf(error).map(({ message }: { message: string }) => message),
    )
  }

  test('expressions are checked before it runs, and take no template', async () => {
    const list = { items: '{{ [1] }}' }
    expect(await check('filter', { ...list, where: 'item > inputs.most', inputs: { most: '{{ inputs.x }}' } })).toEqual(
      [],
    )
    expect(await check('filter', { ...list, where: 'item > inputs.most', inputs: '{{ inputs.o }}' })).toEqual([])
    expect(await check('filter', { ...list, where: 'item >' })).toHaveLength(1)
    expect(await check('filter', { ...list, where: 'item > inputs.least', inputs: { most: 1 } })).toHaveLength(1)
    expect(await check('pick', { ...list, fields: { a: 'phases.p.text', b: 'item' } })).toEqual([
      expect.stringContaining('only `item`, `index` and `inputs` can be used here'),
    ])
    expect(await check('pick', { ...list, fields: ['a', 'b.c'] })).toEqual([])
    expect(await check('filter', { ...list, where: 'item == "{{ inputs.x }}"' })).toEqual([
      expect.stringContaining('pass the value as one of `inputs`, and write inputs.NAME here'),
    ])
  })

  test('a list comes from one place', async () => {
    expect(await check('filter', { where: 'true' })).toEqual([expect.stringContaining('`items` or `file` is missing')])
    expect(await check('filter', { where: 'true', items: [], file: 'a' })).toHaveLength(1)
    expect(await check('diff', { key: 'item', before: [], after_file: 'a' })).toEqual([])
    expect(await check('diff', { key: 'item', before: [], before_file: 'a', after: [] })).toHaveLength(1)
    expect(await check('diff', { key: 'item', before: [] })).toHaveLength(1)
    expect(await check('template', { text: 'a' })).toEqual([])
  })
})
