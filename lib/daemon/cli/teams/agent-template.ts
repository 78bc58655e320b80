// What `agent new` writes: an agent of some JSON API, with a read, a write and a doctor, the test of all three, and what
// lets editors, the type checker and `bun test` find `cadre`.

export function agentSource(name: string): string {
  return `// ${name}: reads and writes items of …
//
//   settings: base_url, api_token
//   get_item  sources: [{ name, ref }]
//   put_item  target_entries: [{ name, ref, file }]

import { type AgentContext, agent, entryOf, pathSegment, readText, secret, Type } from 'cadre'

const Settings = Type.Object({
  base_url: Type.String({
    pattern: '^https?://[^/]',
    'x-expected': 'an address such as https://api.example.com',
    description: 'The address of the API.',
  }),
  api_token: secret({ description: 'A token that may read and write items.' }),
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Ref = Type.String({ minLength: 1, description: 'The id of the item.' })
const File = Type.String({ minLength: 1, description: 'The file whose text becomes the text of the item.' })
/** The form of a reply. Anything else did not come from this API. */
const Account = Type.Object({ name: Type.String() })
const Item = Type.Object({ text: Type.String() })
/** What later phases can read of a result: \`phases.NAME.data.id\`. */
const Data = Type.Object({ id: Type.String({ description: 'The id of the item.' }) })
/** Bytes of a file that is sent. */
const MOST = 1024 * 1024

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads and writes items.',
  settings: Settings,
  // What the schema cannot say: for doctor, \`settings set\` and the start of a run.
  check: ({ base_url }) => ({
    base_url: base_url?.includes('/items/') && \`must be the API alone: write \${base_url.split('/items/', 1)[0]}\`,
  }),
  async doctor(context) {
    const { name } = await api(context)('get the account', '/me', { reply: Account })
    return { who: name, missing: [], text: context.settings.base_url }
  },
  actions: {
    get_item: {
      direction: 'source',
      effect: 'read',
      description: 'Writes an item as JSON.',
      entry: entryOf({ ref: Ref }),
      data: Data,
      async run({ name, ref }, context) {
        const item = await api(context)(\`get item \${ref}\`, pathOf(ref), { reply: Item })
        await context.write(name, item)
        return { text: \`item \${ref}\`, data: { id: ref } }
      },
    },
    put_item: {
      direction: 'target',
      effect: 'idempotent',
      description: 'Makes a file the text of an item.',
      entry: entryOf({ ref: Ref, file: File }),
      data: Data,
      async run({ ref, file }, context) {
        const body = { text: await readText(context, file, MOST) }
        await api(context)(\`put item \${ref}\`, pathOf(ref), { method: 'PUT', body, reply: Item })
        return { text: \`wrote item \${ref}\`, data: { id: ref } }
      },
    },
  },
})

function api(context: Context) {
  const { base_url: base, api_token } = context.settings
  const headers = { authorization: \`Bearer \${api_token}\` }
  return context.api({ setting: 'api_token', base, headers })
}

function pathOf(ref: string): string {
  return \`/items/\${pathSegment(ref)}\`
}
`
}

/** The test of an agent that was copied from a built-in one. */
export function copyTestSource(name: string, agents: string, from: string): string {
  return `// The agent ${name}, which began as a copy of the built-in agent ${from}.

import { expect, test } from 'bun:test'
import agent from '${agents}/${name}.ts'

test('says what it is', () => {
  expect(agent.description).not.toBe('')
})

// testAgent of cadre/testing checks what every agent owes, from one call of each action at a vendor of this test's own.
`
}

/** `agents` is the path of the agent's folder as seen from the test. */
export function testSource(name: string, agents: string): string {
  return `// The agent ${name} against a vendor of this test's own: what every agent owes, and what only this one does.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { type FakeVendor, fakeVendor, testAgent } from 'cadre/testing'

const TOKEN = 'token-of-the-test'

interface Store extends FakeVendor {
  items: Map<string, unknown>
}

/** It refuses what the real one refuses: other tokens, other paths and methods, items that are not there. */
function store(): Store {
  const items = new Map<string, unknown>([['1', { text: 'first' }]])
  const vendor = fakeVendor(
    {
      'GET /me': () => ({ name: 'ada' }),
      'GET /items/:id': ({ params }) => items.get(params.id!),
      'PUT /items/:id': ({ params, body }) => {
        items.set(params.id!, body)
        return body
      },
    },
    { allows: ({ headers }) => headers.get('authorization') === \`Bearer \${TOKEN}\` },
  )
  return Object.assign(vendor, { items })
}

const subject = await testAgent({
  file: join(import.meta.dir, '${agents}/${name}.ts'),
  vendor: store,
  settings: ({ url }) => ({ base_url: url, api_token: TOKEN }),
  examples: {
    get_item: { entry: { name: 'item.json', ref: '1' }, names: 'item 1' },
    put_item: { entry: { name: 'item', ref: '2', file: 'item.md' }, files: { 'item.md': 'second' }, names: 'item 2' },
  },
})

test('get_item writes the item as JSON', async () => {
  using vendor = store()
  const { data, files } = await subject.call(vendor, 'get_item', { name: 'item.json', ref: '1' })
  expect(data).toEqual({ id: '1' })
  expect(JSON.parse(files['item.json']!)).toEqual({ text: 'first' })
})

test('put_item sends a file', async () => {
  using vendor = store()
  const entry = { name: 'item', ref: '2', file: 'item.md' }
  await subject.call(vendor, 'put_item', entry, { files: { 'item.md': 'second' } })
  expect(vendor.items.get('2')).toEqual({ text: 'second' })
})

test('doctor says whose the credential is', async () => {
  using vendor = store()
  expect(await subject.doctor(vendor)).toMatchObject({ who: 'ada' })
})
`
}

/**
 * The tsconfig.json of a home. It extends that of cadre, whose paths say where `cadre` is. Bun follows them too. `types` is
 * the folder with the types of Bun.
 */
export function homeConfig(repository: string, types: string): string {
  const config = {
    extends: `${repository}/tsconfig.json`,
    compilerOptions: { typeRoots: [types] },
    include: ['agents', 'tests'],
  }
  return `${JSON.stringify(config, null, 2)}\n`
}
