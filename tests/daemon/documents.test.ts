// What the daemon says of itself for programs: the schema of team.yml for editors, and the description of its API.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Document } from '../../lib/http/openapi/document.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { undescribed } from '../support/undescribed.ts'

const STOCK = `import { agent, entryOf, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Levels.',
  source: { effect: 'read', description: 'Reads.', entry: entryOf({ ref: Type.String({ description: 'The shelf.' }) }), run: async () => ({ text: '' }) },
})
`

let daemon: RunningDaemon
let doc: Document
beforeAll(async () => {
  daemon = await spawnDaemon({ home: files({ 'agents/stock.ts': STOCK }) })
  doc = (await (await fetch(`${daemon.url}/openapi/json`)).json()) as Document
})
afterAll(() => daemon.stop())

test('editors get the schema of team.yml with the agents of this machine, and pages of other sites get nothing', async () => {
  const at = `${daemon.url}/schema/team.json`
  const reply = await fetch(at)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/schema+json'])
  const schema = (await reply.json()) as {
    $defs: { phase: { properties: { agent: { anyOf: { enum: string[] }[] } } } }
  }
  expect(schema.$defs.phase.properties.agent.anyOf[0]!.enum).toEqual(expect.arrayContaining(['exec', 'stock']))
  expect(JSON.stringify(schema)).toContain('"The shelf."')
  for (const headers of [{ origin: 'https://pages.example' }, { host: 'rebound.example' }, { via: '1.1 proxy' }]) {
    expect((await fetch(at, { headers })).status).toBe(403)
  }
})

test('the API is described as a whole: every route with its reply, and every property', () => {
  const routes = Object.entries(doc.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(each => `${each} ${path}`),
  )
  expect(routes).toEqual(expect.arrayContaining(['post /v1/runs/start', 'get /schema/team.json', 'get /openapi']))
  for (const [path, { post }] of Object.entries(doc.paths)) {
    if (!post) continue
    const { content } = (post.responses[200] ?? post.responses[201]) as {
      content: Record<string, { schema: { properties: object } }>
    }
    // A reply in lines has the form of no envelope.
    if ('application/x-ndjson' in content) continue
    const { data, payload } = content['application/json']!.schema.properties as Record<string, object>
    expect([path, Object.keys(data ?? payload!).length]).toEqual([path, expect.any(Number)])
    expect([path, JSON.stringify(data ?? payload)]).toEqual([path, expect.stringContaining('properties')])
  }
  expect(undescribed(doc), 'give it a `description`, or words in lib/http/openapi/property-words.ts').toEqual([])
})

test('a call of the envelope is described with its envelope', () => {
  const { responses } = doc.paths['/v1/runs/phases']!.post!
  expect(JSON.stringify(responses[200])).toContain('"instance_id"')
  expect(responses[404]).toEqual({ $ref: '#/components/responses/message_404' })
  const references = JSON.stringify(doc).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)
  for (const [, kind, name] of references) expect(doc.components[kind!]).toHaveProperty(name!)
})
