import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  basicAuth,
  type Json,
  jsonApi,
  pagesOf,
  pathSegment,
  readText,
  Type,
  writeListing,
} from '../../lib/agent/cadre.ts'
import { explain } from '../../lib/agent/json-api.ts'
import { fakeVendor, refusal } from '../../lib/testing/fake-vendor.ts'
import { phaseFolder, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'

test('basic credentials are UTF-8', () => {
  expect(basicAuth('kim@acme.test/token', 'pä:ss')).toBe(
    `Basic ${Buffer.from('kim@acme.test/token:pä:ss').toString('base64')}`,
  )
})

test.each(['', '.', '..'])('%p is no segment of a path', text => {
  expect(() => pathSegment(text)).toThrow('cannot be used as an identifier')
})

test('a segment stays one segment', () => {
  expect(pathSegment('a/../b?c#d 🎉')).toBe('a%2F..%2Fb%3Fc%23d%20%F0%9F%8E%89')
})

describe('context.api', () => {
  const Level = Type.Object({ level: Type.Integer() })
  const open = (effect: 'read' | 'once' = 'read') =>
    testContext({
      agent: 'stock',
      action: 'order',
      effect,
      settings: { base_url: 'http://127.0.0.1' },
      key: 'key-of-the-entry',
    })

  test('sends and reads JSON, with the types of the reply', async () => {
    using server = fakeVendor(() => Response.json({ level: 3 }))
    const call = open().context.api({ base: `${server.url}/v1/`, headers: { 'x-token': 't' } })
    const { level } = await call('get level of 7', '/levels/7', { query: { unit: 'kg' }, reply: Level })
    expect(level).toBe(3)
    await call('order 7', '/orders', { body: { ref: '7' } })
    expect(server.seen.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /v1/levels/7', 'POST /v1/orders'])
    expect(server.seen[1]!.body).toEqual({ ref: '7' })
    expect(server.seen.map(({ headers }) => headers.get('x-token'))).toEqual(['t', 't'])
  })

  test('tells in words what failed: the status, what the vendor says, and the setting', async () => {
    using server = fakeVendor(({ path }) =>
      path === '/form' ? Response.json({ a: 1 }) : refusal(401, { message: 'who are you' }),
    )
    const named = open().context.api({ base: server.url, setting: 'api_token' })
    const refused = await failureOf(named('get level of 7', '/x'))
    expect(refused.message).toMatch(/^\[stock\.order\] get level of 7: HTTP 401: .*who are you/)
    expect(refused.hint).toContain('agents.stock.api_token')
    const bare = open().context.api({ base: server.url })
    expect((await failureOf(bare('get it', '/x'))).hint).toContain('set agents.stock again')
    expect((await failureOf(bare('get it', '/form', { reply: Level }))).code).toBe('unexpected_reply')
  })

  test('a POST with a key that the vendor knows is repeated after a lost reply, with the same key', async () => {
    let lost = 1
    using server = fakeVendor(() =>
      lost-- > 0 ? new Response('', { status: 503, headers: { 'retry-after': '0' } }) : Response.json({ level: 1 }),
    )
    const call = open('once').context.api({ base: server.url })
    await call('order 7', '/orders', { body: {}, keyHeader: 'Idempotency-Key', reply: Level })
    expect(server.seen.map(({ headers }) => headers.get('idempotency-key'))).toEqual([
      'key-of-the-entry',
      'key-of-the-entry',
    ])
    lost = 1
    expect((await failureOf(call('order 7', '/orders', { body: {} }))).message).toContain('503')
    expect(server.seen).toHaveLength(3)
  })
})

describe('a call', () => {
  const api = (
    url: string,
    { context } = testContext({ agent: 'stock', action: 'get', settings: { base_url: url } }),
  ) => jsonApi(context, { setting: 'token', base: `${url}/`, headers: { authorization: 'Bearer t' } })

  test('sends JSON, its query and its credential, and reads JSON or nothing', async () => {
    using server = fakeVendor(({ path }) =>
      path === '/none' ? new Response(null, { status: 204 }) : Response.json({ a: 1 }),
    )
    const call = api(server.url)
    const query = { one: 'a&b', many: ['x', 'y'], none: undefined, zero: 0, no: false }
    expect(await call<Json>('do it', '/it', { method: 'POST', query, body: { b: [2] } })).toEqual({ a: 1 })
    const [seen] = server.seen
    expect(String(seen!.query)).toBe('one=a%26b&many=x&many=y&zero=0&no=false')
    expect(seen!.body).toEqual({ b: [2] })
    expect(seen!.headers.get('authorization')).toBe('Bearer t')
    expect(await call<Json>('do it', '/none', { method: 'DELETE' })).toBeNull()
    expect(server.seen[1]!.headers.get('content-type')).toBeNull()
  })

  test.each([204, 200])('that reads, and is answered %d and nothing, fails', async status => {
    using server = fakeVendor(() => new Response(status === 200 ? '' : null, { status }))
    expect(await failureOf(api(server.url)('get it', '/x'))).toMatchObject({ code: 'no_json' })
  })

  test.each([[{ b: 1 }], [null], ['a']])(
    'whose reply is %j and not of the form that was asked for, fails',
    async given => {
      using server = fakeVendor(() => Response.json(given))
      const reply = Type.Object({ a: Type.Integer() })
      expect(await failureOf(api(server.url)('get it', '/x', { reply }))).toMatchObject({
        code: 'unexpected_reply',
        message: expect.stringMatching(
          /^\[stock\.get\] get it: the reply is of another form: (\/a is required|it must be an object), but it is (\{"b":1\}|"a"|null)$/,
        ),
        hint: expect.stringContaining('address'),
      })
    },
  )

  test('whose reply must be empty fails when it is not', async () => {
    using server = fakeVendor(({ path }) => (path === '/none' ? new Response(null, { status: 204 }) : { a: 1 }))
    const put = { method: 'PUT', reply: null }
    expect(await api(server.url)<Json>('put it', '/none', put)).toBeNull()
    expect(await failureOf(api(server.url)('put it', '/x', put))).toMatchObject({
      code: 'unexpected_reply',
      message: '[stock.get] put it: the reply is of another form: it must be empty, but it is {"a":1}',
    })
  })

  test('whose reply has a form must have a reply, and may have more than was asked for', async () => {
    using server = fakeVendor(({ method }) => (method === 'PUT' ? new Response('') : { a: 1, b: 2 }))
    const reply = Type.Object({ a: Type.Integer() })
    expect(await api(server.url)<Json>('get it', '/x', { reply })).toEqual({ a: 1, b: 2 })
    expect(await failureOf(api(server.url)('put it', '/x', { method: 'PUT', reply }))).toMatchObject({
      code: 'no_json',
    })
  })

  test('that is refused begins with the place and says what was tried', async () => {
    using server = fakeVendor(() => refusal(404, 'gone fishing'))
    expect((await failureOf(api(server.url)('get the stock', '/x'))).message).toBe(
      '[stock.get] get the stock: HTTP 404: gone fishing',
    )
  })
})

test('a refusal names the setting or the scope', async () => {
  const { context } = testContext({ agent: 'a' })
  const of = (status: number, scope?: string) => explain(context, refusal(status), 'x', { setting: 'key', scope })
  expect((await of(401)).hint).toContain('agents.a.key')
  expect((await of(403, 'read:stock')).hint).toContain('read:stock')
  expect((await of(403)).hint).toContain('lacks a permission')
})

describe('pages', () => {
  test('that hold no list are an error of their own', async () => {
    const pages = pagesOf(async () => ({ items: undefined as never }))
    expect((await failureOf(Array.fromAsync(pages))).code).toBe('unexpected_reply')
  })

  test('that repeat their cursor end', async () => {
    const pages = pagesOf(async (_?: string) => ({ items: [1], next: 'same' }))
    expect((await failureOf(Array.fromAsync(pages))).code).toBe('endless')
  })

  test('may be empty now and then', async () => {
    const pages = pagesOf(async (at: number = 0) => ({
      items: at % 15 === 14 ? [at] : [],
      next: at < 100 ? at + 1 : null,
    }))
    expect((await Array.fromAsync(pages)).flatMap(({ items }) => items)).toEqual([14, 29, 44, 59, 74, 89])
  })
})

describe('a listing', () => {
  test('shows what fits into data and has the rest in its file', async () => {
    const at = testContext()
    const page = async (from = 0) => ({
      items: Array.from({ length: 100 }, (_, n) => ({ n: from + n })),
      next: from + 100,
    })
    const big = 'x'.repeat(1_000)
    const listing = await writeListing(at.context, {
      name: 'l.json',
      limit: 1_000,
      page,
      brief: ({ n }) => ({ n, big }),
    })
    expect(listing).toMatchObject({ total: 1_000, truncated: true })
    expect(listing.items.length).toBeLessThan(400)
    expect(listing.items.length).toBeGreaterThan(350)
    const file = JSON.parse(readFileSync(join(phaseFolder(at), 'l.json'), 'utf8'))
    expect(file.items).toHaveLength(1_000)
    expect(file.items[999]).toEqual({ n: 999 })
  })

  test('takes 100 where no limit is given, and no more than the page that was needed', async () => {
    const wanted: number[] = []
    const page = async (_: string | undefined, size: number) => {
      wanted.push(size)
      return { items: Array.from({ length: 60 }, () => 1), next: crypto.randomUUID() }
    }
    const listing = await writeListing(testContext().context, { name: 'l', page, brief: item => item })
    expect([listing.items.length, listing.total, listing.truncated, wanted]).toEqual([100, 100, true, [100, 40]])
  })
})

test('a listing ends where a page names itself as the next one, unless it has nothing', async () => {
  const listing = (items: number[]) =>
    writeListing(testContext().context, { name: 'l', page: async () => ({ items, next: 'same' }), brief: item => item })
  expect(await listing([1])).toEqual({ items: [1, 1], total: 2, truncated: true })
  expect((await failureOf(listing([]))).code).toBe('endless')
})

test('a text that is sent whole is bounded and not empty', async () => {
  const at = testContext()
  writeFileSync(join(at.workspace, 'a'), 'äb')
  writeFileSync(join(at.workspace, 'empty'), ' \n')
  expect(await readText(at.context, 'a', 3)).toBe('äb')
  expect(await failureOf(readText(at.context, 'a', 2))).toMatchObject({ code: 'invalid_request', sent: 'no' })
  expect(await failureOf(readText(at.context, 'empty', 9))).toMatchObject({ code: 'invalid_request', sent: 'no' })
  expect(await failureOf(readText(at.context, '../a', 9))).toMatchObject({ code: 'outside' })
})
