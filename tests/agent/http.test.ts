import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fakeVendor, testAgent } from 'cadre/testing'
import http from '../../agents/http.ts'
import { discover } from '../../lib/agent/catalogue.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import { problems } from '../../lib/schema/schema.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { phaseFolder, testContext } from '../support/context.ts'
import { faultServer, rawServer } from '../support/faults.ts'
import { folder } from '../support/folder.ts'
import { truthful } from '../support/truthful.ts'

const TOKEN = 'canary-in-a-header'
const entry = (url: string) => ({ name: 'x', url, headers: { authorization: `Bearer ${TOKEN}` } })
// It passes on whatever comes, and its errors name the host and the path only.
const words = { names: '127.0.0.1', anyReply: true, secrets: [TOKEN] }
await testAgent({
  file: join(import.meta.dir, '../../agents/http.ts'),
  vendor: () =>
    fakeVendor(() => ({ a: 1 }), { allows: ({ headers }) => headers.get('authorization') === `Bearer ${TOKEN}` }),
  settings: () => ({}),
  examples: {
    source: ({ url }) => ({ entry: entry(`${url}/data`), ...words }),
    target: ({ url }) => ({ entry: { ...entry(`${url}/data`), file: 'f' }, files: { f: 'text' }, ...words }),
  },
})

const { source, target } = truthful(http) as Required<typeof http>
const effectOf = (handler: typeof source, entry: object): Effect =>
  typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect

async function failure(work: Promise<unknown>): Promise<AgentError> {
  const error = await work.then(
    () => null,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(AgentError)
  return error
}

describe('a source', () => {
  test('writes the body as received and gives what is known of it', async () => {
    using server = faultServer()
    server.on(
      '/data',
      () => new Response('{"a":[1]}', { headers: { 'content-type': 'application/json', etag: '"7"' } }),
    )
    const at = testContext()
    const result = await source.run(
      { name: 'a.json', url: `${server.url}/data`, headers: { 'x-key': 'k' } },
      at.context,
    )
    expect(result.data).toEqual({
      status: 200,
      bytes: 9,
      content_type: 'application/json',
      etag: '"7"',
      json: { a: [1] },
    })
    expect(readFileSync(join(phaseFolder(at), 'a.json'), 'utf8')).toBe('{"a":[1]}')
    expect(server.seen[0]).toMatchObject({ method: 'GET', headers: { 'x-key': 'k' } })
    expect(server.seen[0]!.headers['idempotency-key']).toBeUndefined()
  })

  test.each(['30d', '999999999999999999999d'])('waits, with a time-out that no timer can count (%s)', async timeout => {
    using server = faultServer()
    server.on('/data', () => Bun.sleep(300).then(() => new Response('x')))
    const result = await source.run({ name: 'a', url: `${server.url}/data`, timeout }, testContext().context)
    expect(result.data).toMatchObject({ status: 200 })
  })

  test('json stands in data up to 256 KiB, and only where it is JSON', async () => {
    using server = faultServer()
    const type = { 'content-type': 'application/vnd.x+json; charset=utf-8' }
    const of = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2))
    server.on('/most', () => new Response(of(256 * 1024), { headers: type }))
    server.on('/more', () => new Response(of(256 * 1024 + 1), { headers: type }))
    server.on('/page', () => new Response('<html>', { headers: type }))
    server.on('/text', () => new Response('"x"'))
    const texts: string[] = []
    const has = async (path: string) => {
      const { data, text } = await source.run({ name: 'x', url: server.url + path }, testContext().context)
      texts.push(text.replace(/^GET \S+: 200, \d+ bytes/, ''))
      return 'json' in (data as object)
    }
    expect([await has('/most'), await has('/more'), await has('/page'), await has('/text')]).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(texts).toEqual([
      '',
      ', too large for `json` (at most 256 KiB): ask for less at once, or read files/phase/x',
      ', and `json` is missing because it is not valid JSON: files/phase/x has it as received',
      '',
    ])
  })

  test.each([
    ['/orders/7', '/orders/7'],
    ['7?a=1', '/made/7?a=1'],
    ['https://other.test/7', 'https://other.test/7'],
    ['https://', null],
  ])('the place %p of what was made is told as a whole address', async (location, expected) => {
    using server = faultServer()
    server.on('/made/', () => new Response('', { status: 201, headers: { location } }))
    const { external } = await target.run({ name: 'x', url: `${server.url}/made/`, body: 'x' }, testContext().context)
    const url = expected?.startsWith('/') ? server.url + expected : expected
    expect(external).toEqual(url === null ? undefined : { url })
  })

  test('a 401 names the fields of the entry that have the credential', async () => {
    using server = faultServer()
    server.on('/', () => new Response('who are you', { status: 401 }))
    const hintOf = async (given: object) =>
      (await failure(source.run({ name: 'x', url: `${server.url}/`, ...given }, testContext().context))).hint
    expect(await hintOf({ headers: { authorization: `Bearer ${TOKEN}` } })).toBe(
      'check the credential in `headers` of the entry x',
    )
    expect(await hintOf({})).toBe(
      'the entry x has no `headers`: a credential stands there, such as Authorization: Bearer {{ secrets.NAME }}',
    )
  })

  test.each([
    [404, undefined, false],
    [200, 204, false],
    [503, undefined, true],
  ])('status %d where %p was expected fails and writes nothing', async (status, expect_status, retryable) => {
    using server = faultServer()
    server.on('/orders/7', () => new Response('the reason', { status, headers: { 'retry-after': '0' } }))
    const at = testContext()
    const entry = { name: 'x', url: `${server.url}/orders/7?key=SECRET`, ...(expect_status && { expect_status }) }
    const error = await failure(source.run(entry, at.context))
    expect(error.message).toContain(`${new URL(server.url).host}/orders/7: HTTP ${status}: the reason`)
    expect(error.message).not.toContain('SECRET')
    expect(error.retryable).toBe(retryable)
    expect(existsSync(phaseFolder(at))).toBe(false)
  })

  test('a request without content is written with an empty body', async () => {
    using server = faultServer()
    server.on('/', ({ method, body }) => Response.json({ method, body }))
    const { data } = await target.run({ name: 'x', url: server.url, method: 'PUT', body: '' }, testContext().context)
    expect(data).toMatchObject({ json: { method: 'PUT', body: '' } })
    const entry = `{ name: x, url: ${server.url}, method: PUT }`
    const team = `name: "@local/x"\nversion: 1.0.0\nphases: [{ name: a, agent: http, target_entries: [${entry}] }]`
    const agents = await discover({ home: folder() })
    const error = await loadBundle(new Map([['team.yml', team]]), { agents }).catch(problemsOf)
    expect(error).toMatchObject([{ message: expect.stringContaining('a request without content has `body: ""`') }])
  })

  test('an expected status passes, alone or in a list', async () => {
    using server = faultServer()
    server.on('/', () => new Response('gone', { status: 410 }))
    for (const expect_status of [410, [200, 410]]) {
      const { data } = await source.run({ name: 'x', url: server.url, expect_status }, testContext().context)
      expect(data).toMatchObject({ status: 410, bytes: 4 })
    }
  })

  test('a body that breaks off leaves no file', async () => {
    using server = await rawServer(socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')
      setTimeout(() => socket.resetAndDestroy(), 20)
    })
    const at = testContext()
    await failure(source.run({ name: 'x', url: server.url }, at.context))
    expect(existsSync(join(phaseFolder(at), 'x'))).toBe(false)
  })

  test('HEAD has no body, GET takes none', async () => {
    using server = faultServer()
    server.on('/', () => new Response('body', { headers: { etag: 'e' } }))
    const { context } = testContext()
    expect((await source.run({ name: 'x', url: server.url, method: 'HEAD' }, context)).data).toMatchObject({
      bytes: 0,
      etag: 'e',
    })
    expect((await failure(source.run({ name: 'x', url: server.url, body: 'x' }, context))).hint).toContain(
      'method: POST',
    )
  })
})

describe('a target', () => {
  test('delivers a file, with the key of its entry, the same over attempts', async () => {
    using server = faultServer()
    server.on('/', () => new Response('', { status: 201, headers: { location: '/things/1' } }))
    const at = testContext({ effect: 'once' })
    writeFileSync(join(at.workspace, 'out.csv'), 'a,b\n')
    const result = await target.run({ name: 'x', url: server.url, file: 'out.csv' }, at.context)
    expect(result.external).toEqual({ url: `${server.url}/things/1` })
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      body: 'a,b\n',
      headers: { 'idempotency-key': at.context.key },
    })
  })

  test('an object is sent as JSON, a text as it is', async () => {
    using server = faultServer()
    server.on('/', () => new Response(''))
    const { context } = testContext()
    await target.run({ name: 'x', url: server.url, method: 'PUT', body: { a: 1 } }, context)
    await target.run({ name: 'x', url: server.url, method: 'PUT', body: 'plain' }, context)
    expect(server.seen[0]).toMatchObject({
      method: 'PUT',
      body: '{"a":1}',
      headers: { 'content-type': 'application/json' },
    })
    expect(server.seen[0]!.headers['idempotency-key']).toBeUndefined()
    expect(server.seen[1]!.body).toBe('plain')
  })

  test('a refusal says that nothing was written, a 5xx that nobody knows', async () => {
    using server = faultServer()
    server.on('/no', () => new Response('', { status: 422 }))
    server.on('/maybe', () => new Response('', { status: 502 }))
    const { context } = testContext({ effect: 'once' })
    expect((await failure(target.run({ name: 'x', url: `${server.url}/no`, body: 'x' }, context))).sent).toBe('no')
    expect((await failure(target.run({ name: 'x', url: `${server.url}/maybe`, body: 'x' }, context))).sent).toBe(
      'unknown',
    )
    expect(server.seen).toHaveLength(2)
  })

  test('a file and a body, or a file outside, are refused before anything is sent', async () => {
    using server = faultServer()
    const { context } = testContext()
    await failure(target.run({ name: 'x', url: server.url, file: 'a', body: 'b' }, context))
    for (const [file, code] of [
      ['/etc/hostname', 'outside'],
      ['none.json', 'not_found'],
    ]) {
      const refusal = await failure(target.run({ name: 'x', url: server.url, file }, context))
      expect(refusal).toMatchObject({ code, sent: 'no' })
    }
    expect(server.seen).toHaveLength(0)
  })
})

test('a GET that starts something is not sent again', async () => {
  using server = faultServer()
  server.on('/build', () => new Response('', { status: 503, headers: { 'retry-after': '0' } }))
  const { context } = testContext({ effect: 'once' })
  await failure(source.run({ name: 'a', url: `${server.url}/build`, effect: 'once' }, context))
  expect(server.seen).toHaveLength(1)
})

test('the effect follows the method, unless the entry says otherwise', () => {
  const effects = ['GET', 'HEAD', 'PUT', 'DELETE', 'POST', 'PATCH'].map(method => effectOf(source, { method }))
  expect(effects).toEqual(['read', 'read', 'idempotent', 'idempotent', 'once', 'once'])
  expect([effectOf(source, {}), effectOf(target, {})]).toEqual(['read', 'once'])
  expect(effectOf(target, { effect: 'idempotent' })).toBe('idempotent')
})

test.each([{}, { file: 'a', body: 'b' }])('a target with %o says that it needs one of two', given => {
  expect(problems(target.entry, { name: 'x', url: 'http://acme.test', ...given })).toEqual([
    { path: '', message: 'needs exactly one of file, body' },
  ])
})
