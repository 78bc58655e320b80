// Every route with every kind of wrong body: one field wrong, one more, one less, too large, no JSON, no UTF-8, nested
// too deep, of another type. Never a fault, never a stack, and what is refused changes nothing.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { TSchema } from 'typebox'
import type { Document } from '../../lib/http/openapi/document.ts'
import { isObject } from '../../lib/json.ts'
import { matches } from '../../lib/schema/schema.ts'
import { AGAIN, startTestHub, type TestHub } from '../support/hub.ts'
import { type Asked, BOTH, OPEN, REALM, USER } from './matrix/specification.ts'
import { commitsOf, contents, makeWorld, type World } from './matrix/world.ts'

let hub: TestHub
let world: World
let doc: Document
let sent = 0
beforeAll(async () => {
  hub = await startTestHub()
  world = await makeWorld(hub)
  doc = (await (await fetch(`${hub.url}/openapi/json`)).json()) as Document
})
afterAll(async () => {
  expect((await hub.log()).filter(line => line.includes('request failed'))).toEqual([])
  await hub.stop()
  process.stdout.write(`wrong bodies: ${sent}\n`)
})

let known = { commits: '', contents: '' }

/** A daemon has been heard, whatever it said. What was not written to since the last look is not read again. */
async function state(): Promise<string> {
  if ((await commitsOf(hub.store)) === known.commits) return known.contents
  await hub.flush()
  const commits = await commitsOf(hub.store)
  known = { commits, contents: await contents(hub, { last_seen_at: 0, called_at: 0 }) }
  return known.contents
}

/** Stands in for each field in turn. */
const ODD: unknown[] = [
  ...[
    null,
    true,
    0,
    -1,
    1.5,
    2 ** 31,
    2 ** 53,
    1e308,
    '',
    ' ',
    '0',
    '-1',
    'x\u0000y',
    '\ud800',
    '%_\\',
    '../x',
    '@a/b',
  ],
  ...['x'.repeat(300), 'x'.repeat(100_000), crypto.randomUUID(), [], {}, [null], ['x'], { x: 1 }, [[[[]]]]],
  ...[JSON.parse('{"__proto__":{"x":1}}'), Array(200).fill(0)],
]
/** Those of them that two databases may take differently: what no column of the one holds, and what has a meaning in SQL. */
const ODD_TO_DATABASES: unknown[] = [
  ...[null, -1, 1.5, 2 ** 31, 2 ** 53, 1e308, '', 'x\u0000y', '\ud800', '%_\\', 'x'.repeat(100_000)],
  ...[crypto.randomUUID(), { x: 1 }, [null]],
]
/** A guess too many of a password makes the account wait. */
const GUESSES = /^(session\/create|users\/change_password)$/

const ROUTES = Object.entries<Asked>({ ...USER, ...REALM, ...BOTH, ...OPEN }).filter(
  ([, { method }]) => method === 'POST',
)

const post = (
  path: string,
  token: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  headers: object = { 'content-type': 'application/json' },
) => fetch(`${hub.url}/v1/${path}`, { method: 'POST', headers: { authorization: `Bearer ${token}`, ...headers }, body })

/** Throws unless the reply is in our form and tells nothing of the inside. */
async function look(what: string, response: Response): Promise<{ status: number; code?: string; details: string[] }> {
  sent++
  const text = await response.text()
  const { status } = response
  // One record a line.
  if (response.headers.get('content-type')?.startsWith('application/x-ndjson')) return { status, details: [] }
  const { ok, error } = JSON.parse(text) as {
    ok: boolean
    error?: { code: string; message: string; details?: { path: string }[] }
  }
  if (status >= 500 || ok !== status < 400) throw new Error(`${what}: ${status} ${text.slice(0, 500)}`)
  if (ok) return { status, details: [] }
  const inside = /\.ts:\d|node_modules|SQLITE|sqlite|SELECT |PostgresError|\bat [A-Za-z.]+ \(/
  if (inside.test(error!.message)) throw new Error(`${what} tells of the inside: ${error!.message}`)
  return { status, code: error!.code, details: error!.details?.map(({ path }) => path) ?? [] }
}

type BodySchema = TSchema & {
  properties: Record<string, unknown>
  required?: string[]
  additionalProperties?: boolean
}

async function refused(path: string, what: string, status: number, reply: Promise<Response>, place?: string) {
  const { status: got, details } = await look(`${path}, ${what}`, await reply)
  expect([path, what, got]).toEqual([path, what, status])
  if (place !== undefined) expect(details).toContain(place)
}

/** Bodies that are none, or lack a field, or have one more. */
async function illFormed(path: string, token: string, valid: Record<string, unknown>, schema: BodySchema) {
  const limit = path === 'teams/publish' ? 16 : path === 'runs/sync' ? 4 : 1
  const send = (value: unknown) => post(path, token, JSON.stringify(value))
  for (const [what, text] of Object.entries({ number: '1', text: '"x"', list: '[]', null: 'null', half: '{"a":' })) {
    await refused(path, what, 400, post(path, token, text))
  }
  await refused(
    path,
    'no UTF-8',
    400,
    post(path, token, new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])),
  )
  await refused(path, 'deep', 400, post(path, token, `{"x":${'['.repeat(5_000)}${']'.repeat(5_000)}}`))
  await refused(path, 'too large', 413, post(path, token, JSON.stringify({ x: 'x'.repeat(limit * 1024 * 1024) })))
  const pieces = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(1024 * 1024).fill(0x20))
    },
  })
  await refused(path, 'too large, of no told length', 413, post(path, token, pieces))
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
    await refused(path, type, 415, post(path, token, JSON.stringify(valid), { 'content-type': type }))
  }
  const packed = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  await refused(path, 'packed', 415, post(path, token, Bun.gzipSync(JSON.stringify(valid)), packed))
  for (const name of schema.required ?? []) {
    const { [name]: _, ...rest } = valid
    await refused(path, `without ${name}`, 400, send(rest), `/${name}`)
  }
  if (schema.additionalProperties === false) {
    await refused(path, 'one more', 400, send({ ...valid, unknown: 1 }), '/unknown')
    await refused(path, 'a prototype', 400, post(path, token, `{"__proto__":{},${JSON.stringify(valid).slice(1)}`))
  }
}

test.each(ROUTES)('%s', async (key, { body }) => {
  const [path] = key.split(' ') as [string]
  const token = key in REALM ? world.realmTokens.same : hub.admin
  const valid = body(world.ids.own, world.mine.site.own) as Record<string, unknown>
  const schema = doc.paths[`/v1/${path}`]!.post!.requestBody!.content['application/json']!.schema as BodySchema
  expect(matches(schema, valid)).toBe(true)

  const before = await state()
  const send = (value: unknown) => post(path, token, JSON.stringify(value))
  const odd = Object.keys(schema.properties).flatMap(name =>
    (AGAIN ? ODD_TO_DATABASES : ODD).map(value => ({ name, value, given: { ...valid, [name]: value } })),
  )
  // What the form or a schema refuses reaches no table.
  if (!AGAIN) {
    await illFormed(path, token, valid, schema)
    const wrong = odd.filter(({ given }) => !matches(schema, given))
    for (let i = 0; i < wrong.length; i += 16) {
      const some = wrong.slice(i, i + 16)
      await Promise.all(some.map(({ name, given }) => refused(path, `wrong ${name}`, 400, send(given))))
    }
  }
  expect(await state()).toBe(before)

  // Of the right form and still odd: what is refused later changes nothing either.
  const rest = odd.filter(({ given }) => matches(schema, given)).slice(0, GUESSES.test(path) ? 2 : undefined)
  let last = before
  for (const { name, value, given } of rest) {
    const { status } = await look(`${path} with ${name} ${JSON.stringify(value).slice(0, 50)}`, await send(given))
    const now = await state()
    if (status >= 400 && !GUESSES.test(path)) expect([path, given, now === last]).toEqual([path, given, true])
    last = now
  }
  // The protocol of daemons rolls: who is older ignores what it does not know.
  if (schema.additionalProperties !== false && isObject(valid)) {
    expect((await look(path, await send({ ...valid, unknown: 1 }))).status).not.toBe(400)
  }
})
