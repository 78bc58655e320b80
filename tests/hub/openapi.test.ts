// The OpenAPI document: every route, with the schema that checks it, its access rule and its errors.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { STATUS } from '../../lib/error.ts'
import type { Document } from '../../lib/http/openapi/document.ts'
import { described } from '../../lib/http/openapi/property-words.ts'
import { Type } from '../../lib/schema/type.ts'
import { Ack, Heartbeat, Poll, Register, Sync } from '../../lib/wire/calls/daemon-link.ts'
import { KeepFile, OfferFile } from '../../lib/wire/calls/hub-artifacts.ts'
import { MEMORY } from '../../lib/wire/protocol.ts'
import { LeasedJob } from '../../lib/wire/records/jobs.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { undescribed } from '../support/undescribed.ts'

let hub: TestHub
let doc: Document
beforeAll(async () => {
  hub = await startTestHub()
  doc = (await (await fetch(`${hub.url}/openapi/json`)).json()) as Document
})
afterAll(() => hub.stop())

const operation = (path: string, method = 'post') => doc.paths[path]![method]!
const bodyOf = (path: string) => operation(path).requestBody!.content['application/json']!.schema as never as Schema

interface Schema {
  type: string
  properties: Record<string, unknown>
  required?: string[]
  additionalProperties?: boolean
}

test('has every route, with its body, rule and errors', () => {
  const documented = Object.entries(doc.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
  )
  expect(documented.sort()).toEqual(hub.routes.map(({ method, path }) => `${method} ${path}`).sort())
  for (const { method, path, rule, status } of hub.routes) {
    const { requestBody, summary, description, responses, security } = operation(path, method.toLowerCase())
    expect(summary, `${path}: say in \`detail.summary\` what it does`).toMatch(/\S/)
    expect(description).toBe(`Access: ${rule}.`)
    expect(security.some(each => 'bearer' in each)).toBe(rule !== 'none')
    expect(Object.keys(responses)).toContain(String(status))
    expect(Object.keys(responses)).toContain('500')
    if (method === 'GET') continue
    if (method === 'PUT') {
      expect(Object.keys(requestBody!.content)).toEqual(['application/octet-stream'])
      continue
    }
    expect(Object.keys(requestBody!.content)).toEqual(['application/json'])
    expect([path, bodyOf(path).type]).toEqual([path, 'object'])
  }
})

test('a body’s schema is the one that checks it', async () => {
  const body = bodyOf('/v1/auth/generate_token')
  expect(body).toMatchObject({ required: ['type', 'name'], additionalProperties: false })
  expect(body.properties.type).toMatchObject({ enum: ['user', 'realm'] })
  for (const path of ['/v1/orgs/create', '/v1/dispatch/run', '/v1/daemons/ack']) {
    const token = path.includes('daemons') ? (await hub.realmToken(hub.admin, hub.realm)).token : hub.admin
    const { status, error } = await hub.call(token, path.slice(4), {})
    expect(status).toBe(400)
    expect(error.message).toContain(error.details![0]!.path)
    expect(error.details!.map(each => each.path.slice(1)).sort()).toEqual(bodyOf(path).required!.toSorted())
  }
  expect(operation('/v1/runs/stream', 'get').parameters).toMatchObject([
    { name: 'run_id', in: 'query', required: true },
  ])
})

test('what daemons send and are answered is what the wire says', () => {
  const plain = (schema: unknown) => JSON.parse(JSON.stringify(schema))
  for (const { path, body, data } of [Register, Heartbeat, Ack, Sync, OfferFile, KeepFile, Poll]) {
    expect([path, bodyOf(path)]).toEqual([path, plain(described(body))])
    const declared = hub.routes.find(route => route.path === path)!.data
    // Of jobs a daemon asks less than the hub promises: it takes kinds that it does not know.
    if (path === Poll.path)
      expect(plain(declared)).toEqual(plain(Type.Object({ jobs: Type.Array(LeasedJob), ...MEMORY })))
    else expect([path, plain(declared)]).toEqual([path, plain(data)])
  }
})

test('what a success answers is told, records that recur by name', async () => {
  for (const { method, path, status } of hub.routes) {
    const { content } = operation(path, method.toLowerCase()).responses[status] as {
      content: Record<string, { schema?: { properties: { data: object } } }>
    }
    const [[type, { schema }]] = Object.entries(content) as [[string, { schema?: { properties: { data: object } } }]]
    // A reply in lines has the form of no envelope.
    if (path.startsWith('/v1/') && method === 'POST' && type !== 'application/x-ndjson') {
      expect([path, type, Object.keys(schema!.properties.data).length > 0]).toEqual([path, 'application/json', true])
    }
  }
  const org = operation('/v1/orgs/update').responses[200] as { content: Record<string, { schema: object }> }
  expect(org.content['application/json']!.schema).toMatchObject({
    required: ['ok', 'data'],
    properties: { data: { $ref: '#/components/schemas/org' } },
  })
  expect(doc.components.schemas!.token).toMatchObject({ required: expect.arrayContaining(['id', 'permissions']) })
  // The wire's own names, once each: no schema brings an identity along that could clash.
  expect(JSON.stringify(doc)).not.toContain('"$id"')
})

test('every property says what it means', () => {
  const advice = 'give it a `description`, or its name one meaning everywhere in lib/http/openapi/property-words.ts'
  expect(undescribed(doc), advice).toEqual([])
})

test('errors are those of the wire, and every reference leads somewhere', () => {
  for (const [code, status] of Object.entries(STATUS)) {
    expect(JSON.stringify(doc.components.responses![status])).toContain(`"${code}"`)
  }
  const references = JSON.stringify(doc).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)
  for (const [, kind, name] of references) expect(doc.components[kind!]).toHaveProperty(name!)
  expect(JSON.stringify(doc).match(/"\$ref":"(?!#\/components\/)/)).toBeNull()
})

test('the page shows every route and loads nothing from elsewhere', async () => {
  const reply = await fetch(`${hub.url}/openapi`)
  expect(reply.headers.get('content-type')).toStartWith('text/html')
  expect(reply.headers.get('content-security-policy')).toStartWith("default-src 'none'")
  const html = await reply.text()
  for (const { method, path } of hub.routes) expect(html).toContain(`<code>${method} ${path}</code>`)
  expect(html).not.toMatch(/https?:|<script|src=/)
})
