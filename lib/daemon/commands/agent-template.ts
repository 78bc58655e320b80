// What `agent new` writes: an agent of some JSON API, with a read, a write and a doctor, and the test of all three.

export function agentSource(name: string): string {
  return `// ${name}: reads and writes items of …
//
//   settings: base_url, api_token
//   get_item  sources: [{ name, ref }]
//   put_item  target_entries: [{ name, ref, file }]

import { type AgentContext, agent, entryOf, jsonApi, pathSegment, readText, secret, Type } from 'cadre'

const Settings = Type.Object({ base_url: Type.String({ pattern: '^https?://[^/]' }), api_token: secret() })
type Context = AgentContext<Type.Static<typeof Settings>>

const Text = Type.String({ minLength: 1 })
/** Bytes of a file that is sent. */
const MOST = 1024 * 1024

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads and writes items.',
  settings: Settings,
  async doctor(context) {
    const { name } = await api(context)<{ name: string }>('get the account', '/me')
    return { who: name, missing: [], text: context.settings.base_url }
  },
  actions: {
    get_item: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: Text }),
      async run({ name, ref }, context) {
        const item = await api(context)(\`get item \${ref}\`, pathOf(ref))
        await context.write(name, item)
        return { text: \`item \${ref}\`, data: { id: ref } }
      },
    },
    put_item: {
      direction: 'target',
      effect: 'idempotent',
      entry: entryOf({ ref: Text, file: Text }),
      async run({ ref, file }, context) {
        const body = { text: await readText(context, file, MOST) }
        await api(context)(\`put item \${ref}\`, pathOf(ref), { method: 'PUT', body })
        return { text: \`wrote item \${ref}\`, data: { id: ref } }
      },
    },
  },
})

function api(context: Context) {
  const { base_url: base, api_token } = context.settings
  const headers = { authorization: \`Bearer \${api_token}\` }
  return jsonApi(context, { setting: 'api_token', base, headers })
}

function pathOf(ref: string): string {
  return \`/items/\${pathSegment(ref)}\`
}
`
}

export interface TestPlaces {
  name: string
  /** Of cadre's own modules, as the test imports them. */
  catalogue: string
  context: string
  /** The folder that holds `agents/`, from the test's. */
  root: string
}

export function testSource({ name, catalogue, context, root }: TestPlaces): string {
  return `// The agent ${name} against a server of this test's own, with a context as the daemon makes it.

import { afterAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { discover } from '${catalogue}'
import { phaseFolder, testContext } from '${context}'

const subject = (await discover({ home: join(import.meta.dir, '${root}') })).get('${name}')!
const items = new Map<string, unknown>([['1', { text: 'first' }]])

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.headers.get('authorization') !== 'Bearer token-of-the-test') return new Response('', { status: 401 })
    const { pathname } = new URL(request.url)
    if (pathname === '/me') return Response.json({ name: 'ada' })
    const id = pathname.split('/').at(-1)!
    if (request.method === 'PUT') items.set(id, await request.json())
    return items.has(id) ? Response.json(items.get(id)) : new Response('', { status: 404 })
  },
})
afterAll(() => server.stop(true))

const begin = (api_token = 'token-of-the-test') =>
  testContext({ agent: '${name}', settings: { base_url: server.url.origin, api_token }, effect: 'idempotent' })

test('get_item writes the item as JSON', async () => {
  const at = begin()
  expect((await subject.actions!.get_item!.run({ name: 'item.json', ref: '1' }, at.context)).data).toEqual({ id: '1' })
  expect(JSON.parse(readFileSync(join(phaseFolder(at), 'item.json'), 'utf8'))).toEqual({ text: 'first' })
})

test('put_item sends a file', async () => {
  const at = begin()
  writeFileSync(join(at.workspace, 'item.md'), 'second')
  await subject.actions!.put_item!.run({ name: 'item', ref: '2', file: 'item.md' }, at.context)
  expect(items.get('2')).toEqual({ text: 'second' })
})

test('an item that is not there is an error that says so', async () => {
  const missing = subject.actions!.get_item!.run({ name: 'item.json', ref: '9' }, begin().context)
  await expect(missing).rejects.toMatchObject({ code: 'not_found' })
})

test('doctor tells whose the credential is, or what to set anew', async () => {
  expect(await subject.doctor!(begin().context)).toMatchObject({ who: 'ada', missing: [] })
  const refused = subject.doctor!(begin('another').context)
  await expect(refused).rejects.toMatchObject({ hint: expect.stringContaining('agents.${name}.api_token') })
})
`
}
