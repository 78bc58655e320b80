// The kit over real sockets: order of checks, forms of replies, limits, streams, start and stop.

import { afterAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { Elysia } from 'elysia'
import { Type } from 'typebox'
import { CadreError } from '../../lib/error.ts'
import { type Access, admission } from '../../lib/http/admission.ts'
import { health } from '../../lib/http/health.ts'
import { httpKit } from '../../lib/http/kit.ts'
import { listen } from '../../lib/http/listen.ts'
import { envelopeFrame, ReadySuccess } from '../../lib/http/reply.ts'
import { root, STRICT } from '../../lib/http/root.ts'
import { eventStream, jsonStream } from '../../lib/http/stream.ts'
import { createLog } from '../../lib/log/log.ts'
import { closed, standard } from '../../lib/schema/schema.ts'

type Payload = NonNullable<RequestInit['body']>

const lines: string[] = []
const log = createLog({ level: 'debug', format: 'json', write: line => lines.push(line) })

const token: Access<{ name: string }> = {
  rule: 'the token `good`',
  admit({ bearer }) {
    if (bearer === 'good') return { name: 'gina' }
    throw new CadreError('unauthorized', 'no valid credential')
  },
}
const nobody: Access<{ name: string }> = {
  ...token,
  permit({ name }) {
    throw new CadreError('forbidden', `${name} may not`)
  },
}
const anyone: Access<string | null> = { rule: 'none', admit: ({ peer }) => peer() }
const bearer: Access<string | null> = { rule: 'none', admit: each => each.bearer }

const kit = () =>
  new Elysia({ name: 'test' }).use(httpKit()).macro({
    token: (_: true) => admission(token),
    nobody: (_: true) => admission(nobody),
    anyone: (_: true) => admission(anyone),
    bearer: (_: true) => admission(bearer),
  })

/** What `/ready` finds. */
let trouble: () => string | null | Promise<string | null> = () => null

const ready = new ReadySuccess({ motto: 'Grüße' })
const Greeting = closed({ name: Type.String({ maxLength: 5 }), times: Type.Optional(Type.Integer()) })
let streamEnded = 0
const resource = new Elysia({ name: 'resource' })
  .use(kit())
  .post('/greet', ({ body, caller }) => `${caller.name} greets ${body.name}`, { token: true, body: Greeting })
  .post('/closed', () => 'never', { nobody: true, body: Greeting })
  .post('/peer', ({ caller }) => caller, { anyone: true, body: closed({}) })
  .post('/bearer', ({ caller }) => caller, { bearer: true, body: closed({}) })
  .post(
    '/logging',
    async () => {
      log.info('at once')
      await Bun.sleep(5)
      log.info('after a while')
      void Bun.sleep(60).then(() => log.info('left behind'))
      return null
    },
    { anyone: true, body: closed({}) },
  )
  .post('/ready-made', () => ready, { anyone: true, body: closed({}) })
  .post('/made', () => ({ id: 1 }), { anyone: true, body: standard(Type.Object({})), status: 201 })
  .post('/small', ({ body }) => body, { anyone: true, body: standard(Type.Unknown()), limit: 1000 })
  .post(
    '/fault',
    () => {
      throw new Error('the disk says\nparams: hunter2')
    },
    { anyone: true, body: closed({}) },
  )
  .post(
    '/busy',
    () => {
      throw new CadreError('rate_limited', 'slower', { retryAfter: 2.2 })
    },
    { anyone: true, body: closed({}) },
  )
  .post('/envelope', () => 7, {
    anyone: true,
    body: closed({ id: Type.String(), type: Type.Literal('x') }),
    frame: envelopeFrame(() => 'i-1'),
  })
  .get('/items', ({ query }) => jsonStream('{"items":[', Array(Number(query.count)).keys(), ']}'), {
    anyone: true,
    query: closed({ count: Type.String({ pattern: '^[0-9]+$' }) }),
  })
  .get(
    '/events',
    ({ request, server, stopping }) => {
      server?.timeout(request, 0)
      return eventStream(async function* (signal) {
        yield { id: 1, event: 'tick', data: { n: 1 } }
        await new Promise(resolve => signal.addEventListener('abort', resolve))
        streamEnded++
      }, stopping.signal)
    },
    { anyone: true, query: closed({}) },
  )
const api = new Elysia(STRICT)
  .use(root(log))
  .use(
    health(
      () => ({ version: '1.2.3' }),
      () => trouble(),
    ),
  )
  .use(resource)

const listening = listen(api, { host: '127.0.0.1', port: 0 })
afterAll(() => listening.stop())

const post = (path: string, body?: Payload, headers: Record<string, string> = {}) =>
  fetch(listening.url + path, { method: 'POST', ...(body !== undefined && { body }), headers })
const json = { 'content-type': 'application/json' }
const good = { ...json, authorization: 'Bearer good' }

async function failure(reply: Promise<Response>) {
  const response = await reply
  const body = (await response.json()) as { ok: false; error: { code: string; message: string; details?: unknown } }
  expect(body.ok).toBe(false)
  expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  return { status: response.status, ...body.error, headers: response.headers }
}

describe('routes', () => {
  const declared = (name: string, method: 'POST' | 'GET') =>
    new Elysia({ name, prefix: '/v1/greetings' }).use(kit()).route(method, '/greet', () => 'hello', { anyone: true })

  const twice = 'POST /v1/greetings/greet is declared twice: remove one of the two'
  test('two plugins that declare the same one do not make an app', () => {
    const app = new Elysia(STRICT).use(root(log)).use(declared('one', 'POST'))
    expect(() => app.use(declared('two', 'POST'))).toThrow(twice)
  })
  test('nor does a plugin that declares one twice make a plugin', () => {
    const plugin = declared('one', 'POST')
    expect(() => plugin.post('/greet', () => 'another', { anyone: true })).toThrow(twice)
  })
  test('another method of a path is another route', () => {
    const app = new Elysia(STRICT).use(root(log)).use(declared('one', 'POST')).use(declared('two', 'GET'))
    expect(app.routes.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/greetings/greet',
      'GET /v1/greetings/greet',
    ])
  })
})

describe('replies', () => {
  test('success carries the data and a request id', async () => {
    const response = await post('/greet', '{"name":"ada"}', good)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ ok: true, data: 'gina greets ada' })
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(response.headers.get('content-type')).toStartWith('application/json')
  })
  test('a success that is ready is sent again and again, each time under its own request id', async () => {
    const sent = [await post('/ready-made'), await post('/ready-made')]
    for (const response of sent) {
      expect(response.headers.get('content-type')).toBe('application/json;charset=utf-8')
      expect(await response.json()).toEqual({ ok: true, data: { motto: 'Grüße' } })
    }
    expect(new Set(sent.map(({ headers }) => headers.get('x-request-id'))).size).toBe(2)
  })
  test('a route declares another status', async () => expect((await post('/made', '{}', json)).status).toBe(201))
  test('an empty body counts as {}', async () => {
    expect(await (await post('/peer')).json()).toEqual({ ok: true, data: '127.0.0.1' })
  })
  test('health needs no credential', async () => {
    const response = await fetch(`${listening.url}/health`)
    expect(await response.json()).toEqual({ ok: true, data: { status: 'ok', version: '1.2.3' } })
  })
  test('ready says what is missing, and when nothing is', async () => {
    const ready = () => fetch(`${listening.url}/ready`)
    expect(await (await ready()).json()).toEqual({ ok: true, data: { status: 'ready' } })
    const troubles: [typeof trouble, string][] = [
      [() => 'the disk is full', 'the disk is full'],
      [() => Promise.reject(new Error('password=hunter2')), 'the database does not answer'],
      [() => new Promise(() => {}), 'the database has not answered for 2000 ms'],
    ]
    for (const [found, told] of troubles) {
      trouble = found
      const { status, code, message } = await failure(ready())
      expect([status, code, message]).toEqual([503, 'unavailable', `not ready: ${told}`])
    }
    trouble = () => null
    expect((await ready()).status).toBe(200)
  })
  test('what is logged for a request has its id, and what it leaves behind has not', async () => {
    const replies = await Promise.all(Array.from({ length: 8 }, () => post('/logging')))
    await Bun.sleep(200)
    const told = lines.map(line => JSON.parse(line) as { event: string; requestId?: string })
    for (const { headers } of replies) {
      const mine = told.filter(({ requestId }) => requestId === headers.get('x-request-id'))
      expect(mine.map(({ event }) => event)).toEqual(['at once', 'after a while'])
    }
    const left = told.filter(({ event }) => event === 'left behind')
    expect(left.map(({ requestId }) => requestId)).toEqual(Array(8).fill(undefined))
  })
  test('requests are counted by route and status, and no caller makes up a label', async () => {
    await post('/made', '{}', json)
    await fetch(`${listening.url}/made-up?secret=1`, { method: 'PROPFIND' })
    const text = api.decorator.durations.text()
    const labels = 'http_request_method="POST",http_route="/made",http_response_status_code="201"'
    const counted = text.split('\n').filter(line => line.includes(labels))
    const total = Number(counted.at(-1)!.split(' ').at(-1))
    expect(total).toBeGreaterThanOrEqual(1)
    expect(counted).toHaveLength(17)
    expect(counted[14]).toBe(`http_server_request_duration_seconds_bucket{${labels},le="+Inf"} ${total}`)
    expect(text).toContain('{http_request_method="_OTHER",http_response_status_code="404"')
    expect(text).not.toContain('made-up')
    expect(text).not.toContain('secret')
  })
  test('a fault of ours is internal, and its text stays in the log, without parameters', async () => {
    const { status, code, message, headers } = await failure(post('/fault'))
    expect([status, code]).toEqual([500, 'internal'])
    expect(message).not.toContain('disk')
    const line = lines.find(each => each.includes(headers.get('x-request-id')!))!
    expect(line).toContain('the disk says')
    expect(line).not.toContain('hunter2')
  })
  test('rate limits say when to come again', async () => {
    const { status, headers } = await failure(post('/busy'))
    expect(status).toBe(429)
    expect(headers.get('retry-after')).toBe('3')
  })
  test('envelopes echo the id and carry the error', async () => {
    const ok = await (await post('/envelope', '{"id":"a","type":"x"}', json)).json()
    expect(ok).toMatchObject({
      type: 'ok',
      version: 1,
      id: 'a',
      run_id: null,
      instance_id: 'i-1',
      payload: { data: 7 },
    })
    const bad = await post('/envelope', '{"id":"a","type":"y"}', json)
    expect(bad.status).toBe(400)
    expect(await bad.json()).toMatchObject({ type: 'error', id: 'a', payload: { code: 'invalid_request' } })
    const unread = (await (await post('/envelope', '{', json)).json()) as { id: string }
    expect(unread.id).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('order of checks', () => {
  const big = new Uint8Array(2 * 1024 * 1024)
  test.each([
    ['an unknown path comes first', '/nowhere', big, {}, 404, 'not_found'],
    ['a trailing slash is another path', '/greet/', '{}', good, 404, 'not_found'],
    ['size before type', '/greet', big, {}, 413, 'too_large'],
    ['type before credential', '/greet', '{}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['credential before body', '/greet', '{', json, 401, 'unauthorized'],
    ['body after credential', '/greet', '{', good, 400, 'invalid_request'],
    ['body before permission', '/closed', '{}', good, 400, 'invalid_request'],
    ['permission last', '/closed', '{"name":"x"}', good, 403, 'forbidden'],
    ['no compressed bodies', '/greet', '{}', { ...good, 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
    ['not UTF-8', '/greet', new Uint8Array([0x22, 0xff, 0x22]), good, 400, 'invalid_request'],
    ['too deep', '/small', '['.repeat(400), json, 400, 'invalid_request'],
  ] as [string, string, Payload, Record<string, string>, number, string][])(
    '%s',
    async (_, path, body, headers, status, code) => {
      expect(await failure(post(path, body, headers))).toMatchObject({ status, code })
    },
  )
  test('a wrong method names the right one', async () => {
    const { status, headers } = await failure(fetch(`${listening.url}/greet`))
    expect(status).toBe(405)
    expect(headers.get('allow')).toBe('POST')
  })
  test('HEAD is no way around the method', async () => {
    for (const [path, status] of [
      ['/health', 405],
      ['/greet', 405],
      ['/nowhere', 404],
    ] as const) {
      expect((await fetch(listening.url + path, { method: 'HEAD' })).status).toBe(status)
    }
  })
  test.each([
    ['Bearer good', 'good'],
    ['bearer good', 'good'],
    ['BEARER   good', 'good'],
    [undefined, null],
  ])('the credential of %j is %j', async (authorization, data) => {
    const reply = await post('/bearer?access_token=good', '{}', { ...json, ...(authorization && { authorization }) })
    expect(await reply.json()).toEqual({ ok: true, data })
  })
  test.each(['Basic good', 'Bearer', 'Bearer:good', 'Bearergood', 'good'])(
    '%j is no credential',
    async authorization => {
      const wrong = await failure(post('/bearer', '{}', { ...json, authorization }))
      expect(wrong).toMatchObject({ status: 401, code: 'unauthorized' })
      // Where nobody asks for a credential, none can be wrong.
      expect((await post('/peer', '{}', { ...json, authorization })).status).toBe(200)
    },
  )
  test('401 asks for a bearer', async () => {
    const { headers } = await failure(post('/greet', '{}', { ...json, authorization: 'Basic Z29vZA==' }))
    expect(headers.get('www-authenticate')).toBe('Bearer')
  })
})

describe('bodies', () => {
  test('every problem is listed by JSON pointer; nothing is coerced', async () => {
    const { details } = await failure(post('/greet', '{"name":"too long","times":"3","a/b":1}', good))
    expect(details).toEqual(
      expect.arrayContaining([
        { path: '/a~1b', message: 'unknown property' },
        { path: '/times', message: 'must be an integer' },
        expect.objectContaining({ path: '/name' }),
      ]),
    )
    expect(details).toHaveLength(3)
  })
  test('many problems are listed, up to a bound', async () => {
    const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))
    const listed = async (count: number) => {
      const { details } = await failure(post('/greet', JSON.stringify(unknown(count)), good))
      return (details as unknown[]).length
    }
    expect(await listed(20)).toBe(21)
    expect(await listed(1_000)).toBe(64)
  })
  test('what is missing is named', async () => {
    expect((await failure(post('/greet', '{}', good))).details).toEqual([{ path: '/name', message: 'is required' }])
  })
  test('null, arrays and text are no objects', async () => {
    for (const body of ['null', '[]', '"x"', '1']) expect((await failure(post('/greet', body, good))).status).toBe(400)
  })
  test('a chunked body without a length is bounded too', async () => {
    const chunked = (count: number) =>
      new ReadableStream({
        async start(controller) {
          controller.enqueue(new TextEncoder().encode('"'))
          for (let i = 0; i < count; i++) {
            controller.enqueue(new Uint8Array(100).fill(97))
            await Bun.sleep(1)
          }
          controller.enqueue(new TextEncoder().encode('"'))
          controller.close()
        },
      })
    expect((await post('/small', chunked(5), json)).status).toBe(200)
    expect((await failure(post('/small', chunked(30), json))).status).toBe(413)
  })
  test.each([5_000, 5e12])('a content-length of %p is refused before a byte is read, in our form', async length => {
    const socket = connect(listening.port, '127.0.0.1')
    const reply = new Promise<string>(resolve => socket.once('data', data => resolve(String(data))))
    socket.write(
      `POST /small HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n{`,
    )
    expect(await reply).toStartWith('HTTP/1.1 413')
    expect(await reply).toMatch(/x-request-id: .*"code":"too_large"/s)
    socket.destroy()
  })
})

describe('streams', () => {
  test('big JSON arrives whole', async () => {
    const reply = (await (await fetch(`${listening.url}/items?count=50000`)).json()) as { items: number[] }
    expect(reply.items).toHaveLength(50_000)
    expect(reply.items.at(-1)).toBe(49_999)
  })
  test('a bad query is refused like a bad body', async () => {
    expect((await failure(fetch(`${listening.url}/items?count=x`))).details).toHaveLength(1)
  })
  test('events flow, and end when the reader goes', async () => {
    const leave = new AbortController()
    const reply = await fetch(`${listening.url}/events`, { signal: leave.signal })
    const reader = reply.body!.getReader()
    let text = ''
    while (!text.includes('tick')) text += new TextDecoder().decode((await reader.read()).value)
    expect(text).toContain('id: 1\nevent: tick\ndata: {"n":1}\n\n')
    leave.abort()
    for (let i = 0; i < 100 && streamEnded === 0; i++) await Bun.sleep(10)
    expect(streamEnded).toBe(1)
  })
})

describe('start and stop', () => {
  const quiet = createLog({ write: () => {} })
  const address = { host: '127.0.0.1', port: 0 }
  test('an undeclared route stops the start', () => {
    const other = new Elysia(STRICT).use(root(quiet)).post('/wild', () => 1)
    expect(() => listen(other, address)).toThrow(/without a declared access: POST \/wild/)
  })
  test('a port in use is named', () => {
    const other = new Elysia(STRICT).use(root(quiet))
    expect(() => listen(other, { ...address, port: listening.port })).toThrow(/in use/)
  })
  test('stopping ends streams and waits for requests in flight', async () => {
    const other = new Elysia(STRICT)
      .use(root(quiet))
      .use(kit())
      .post('/slow', () => Bun.sleep(200).then(() => 'done'), { anyone: true, body: closed({}) })
      .get(
        '/events',
        ({ stopping }) =>
          eventStream(async function* (signal) {
            yield { data: 1 }
            await new Promise(resolve => signal.addEventListener('abort', resolve))
          }, stopping.signal),
        { anyone: true, query: closed({}) },
      )
    const { url, stop } = listen(other, address)
    const stream = await fetch(`${url}/events`)
    const slow = fetch(`${url}/slow`, { method: 'POST' })
    await Bun.sleep(50)
    await Promise.all([stop(), slow.then(async reply => expect(await reply.json()).toMatchObject({ data: 'done' }))])
    // A stream that had to be cut would fail here.
    expect(await stream.text()).toContain('data: 1')
  })
})

test.each([
  ['with a length', 'content-length: 900\r\n\r\n{"a":'],
  ['in chunks', 'transfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\n'],
])('an upload that is dropped %s is no fault of ours', async (_, rest) => {
  const before = lines.length
  const socket = connect(listening.port, '127.0.0.1')
  await new Promise<void>(resolve => socket.on('connect', () => resolve()))
  socket.write(`POST /small HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${rest}`)
  await Bun.sleep(100)
  socket.destroy()
  for (const until = Date.now() + 2_000; lines.length === before && Date.now() < until; ) await Bun.sleep(10)
  expect(lines.slice(before).map(line => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 'debug', event: 'request refused', path: '/small', code: 'invalid_request' }),
  ])
})
