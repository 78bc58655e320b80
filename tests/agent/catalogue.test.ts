import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { discover, findAgents } from '../../lib/agent/catalogue.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import { MODULES } from '../../lib/agent/imports.ts'
import tsconfig from '../../tsconfig.json'
import { folder } from '../support/folder.ts'

const REPOSITORY = join(import.meta.dir, '../..')

const stock = (extra = '') => `import { agent, secret, Type, AgentError } from 'cadre'
${extra}
export default agent({
  type: 'connector', version: '1.2.3', description: 'Stock levels of the warehouse.',
  settings: Type.Object({ base_url: Type.String(), api_token: secret() }),
  actions: {
    get_level: {
      direction: 'source', effect: 'read',
      entry: Type.Object({ name: Type.String(), ref: Type.String() }),
      async run(entry) { throw new AgentError('no item ' + entry.ref, { hint: 'check ref' }) },
    },
  },
})
`

/** A home with these files in its folder `agents`. */
function homeWith(files: Record<string, string>): string {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, 'agents', name), text)
  return home
}

/** What discovery says of one file: its reason, or null when it became an agent. */
async function reasonFor(text: string, name = 'probe.ts'): Promise<string | null> {
  const home = homeWith({ [name]: text, 'sound.ts': stock() })
  const catalogue = await discover({ home, timeout: 300 })
  expect(catalogue.names()).toContain('sound')
  return catalogue.skipped.find(({ file }) => file === join(home, 'agents', name))?.reason ?? null
}

test('the built-in agents are all sound', async () => {
  const { names, skipped, shadowed } = await discover({ home: folder() })
  expect(names()).toEqual(expect.arrayContaining(['exec', 'http']))
  expect(skipped).toEqual([])
  expect(shadowed).toEqual([])
})

test('an agent without settings leaves them out', async () => {
  const { get } = await discover({ home: homeWith({ 'stock.ts': stock().replace(/settings: .*/, '') }) })
  expect(Object.keys(get('stock')!.settings.properties)).toEqual([])
})

test('the public list: schemas as JSON Schema, secrets marked, nothing of TypeBox', async () => {
  const { list } = await discover({ home: homeWith({ 'stock.ts': stock() }) })
  const { version, agents } = list() as { version: string; agents: { name: string }[] }
  expect(version).toBe('1.0.0')
  expect(agents.find(({ name }) => name === 'stock')).toMatchObject({
    type: 'connector',
    version: '1.2.3',
    settings: {
      type: 'object',
      required: ['base_url', 'api_token'],
      properties: { base_url: { type: 'string' }, api_token: { type: 'string', 'x-secret': true } },
    },
    actions: { get_level: { direction: 'source', effect: 'read', find: false, entry: { required: ['name', 'ref'] } } },
  })
  expect(agents.find(({ name }) => name === 'http')).toMatchObject({ actions: {}, source: { effect: 'by entry' } })
})

test('a dropped file throws the very class that the core knows; an account is its agent', async () => {
  const { get } = await discover({ home: homeWith({ 'stock.ts': stock() }) })
  const { run } = get('stock@eu')!.actions!.get_level!
  expect(run({ name: 'x', ref: '7' }, {} as never)).rejects.toBeInstanceOf(AgentError)
  expect(get('nothing')).toBeUndefined()
})

test('later folders shadow earlier ones, and the catalogue says so', async () => {
  const home = homeWith({ 'http.ts': stock(), 'stock.ts': stock() })
  const extra = join(homeWith({ 'stock.ts': stock('// another') }), 'agents')
  const { get, shadowed } = await discover({ home, extra })
  expect(get('http')!.version).toBe('1.2.3')
  expect([...shadowed]).toEqual([
    { name: 'http', file: join(REPOSITORY, 'agents/http.ts'), by: join(home, 'agents/http.ts') },
    { name: 'stock', file: join(home, 'agents/stock.ts'), by: join(extra, 'stock.ts') },
  ])
})

test('a broken file does not shadow: the earlier agent stays', async () => {
  const { get, skipped } = await discover({ home: homeWith({ 'http.ts': 'export default 1' }) })
  expect(get('http')!.type).toBe('exec')
  expect(skipped[0]!.reason).toContain(`'http' stays that of ${join(REPOSITORY, 'agents/http.ts')}`)
})

describe('agents are loaded by name', () => {
  const noting = (name: string) => `globalThis.loadedAgents = [...(globalThis.loadedAgents ?? []), '${name}']\n`
  const loaded = () => Reflect.get(globalThis, 'loadedAgents')

  test('and only once', async () => {
    const home = homeWith({ 'first.ts': noting('first') + stock(), 'second.ts': noting('second') + stock() })
    const catalogue = findAgents({ home })
    expect(catalogue.names()).toEqual(expect.arrayContaining(['exec', 'first', 'second']))
    expect(loaded()).toBeUndefined()
    const both = await Promise.all([catalogue.load(['first@eu', 'nothing']), catalogue.load(['first'])])
    expect(both).toEqual([catalogue, catalogue])
    expect(loaded()).toEqual(['first'])
    expect(catalogue.get('first@eu')!.version).toBe('1.2.3')
    await catalogue.load()
    expect(loaded()).toEqual(['first', 'second'])
  })

  test('and not given away before', () => {
    const catalogue = findAgents({ home: homeWith({ 'stock.ts': stock() }) })
    expect(() => catalogue.get('stock@eu')).toThrow('the agent stock was not loaded')
    expect(catalogue.get('nothing')).toBeUndefined()
  })

  test('a broken file is known as such when it is loaded; what it would shadow is loaded with it', async () => {
    const home = homeWith({ 'http.ts': 'export default 1', 'broken.ts': 'export default 2', 'exec.ts': stock() })
    const catalogue = findAgents({ home })
    expect(catalogue.skipped).toEqual([])
    await catalogue.load(['http', 'exec'])
    expect(catalogue.get('http')!.type).toBe('exec')
    expect(catalogue.get('exec')!.version).toBe('1.2.3')
    expect(catalogue.skipped.map(({ file }) => file)).toEqual([join(home, 'agents/http.ts')])
    expect(catalogue.shadowed.map(({ name }) => name)).toEqual(['exec'])
    expect(catalogue.names()).toContain('broken')
    await catalogue.load()
    expect(catalogue.names()).not.toContain('broken')
    expect(catalogue.skipped).toHaveLength(2)
  })
})

describe('files that cannot be agents are named and skipped', () => {
  const cases: [string, string, RegExp][] = [
    [
      'a syntax error',
      "import { agent } from 'cadre'\nexport default agent({ x: \n",
      /probe\.ts:2:\d+: Unexpected end of file/,
    ],
    [
      'an exception',
      "const boom = () => {\n  throw new Error('boom')\n}\nboom()\nexport default 1",
      /probe\.ts:\d+:\d+: boom/,
    ],
    ['no default export', 'export const agent = 1', /exports no agent: write `export default agent/],
    ['a plain object', "export default { type: 'connector' }", /exports no agent/],
    ['a name that cadre does not have', "import { agnt } from 'cadre'\nexport default agnt", /agnt/],
    [
      'a file that is not there',
      "import './missing.ts'\nexport default 1",
      /probe\.ts:1: imports '\.\/missing\.ts', which does not exist/,
    ],
    [
      'a package that is not installed',
      "\nimport x from 'left-pad-of-nobody'\nexport default x",
      /probe\.ts:2: imports 'left-pad-of-nobody'/,
    ],
    ['a scoped package', "import x from '@nobody/left-pad'\nexport default x", /@nobody\/left-pad/],
    ['a dynamic import', "await import('left-pad-of-nobody')\nexport default 1", /left-pad-of-nobody/],
    ['a require', "const x = require('left-pad-of-nobody')\nexport default x", /left-pad-of-nobody/],
    [
      'an import from the network',
      "import x from 'https://example.test/x.ts'\nexport default x",
      /https:\/\/example\.test/,
    ],
    ['a top-level await that hangs', 'await new Promise(() => {})\nexport default 1', /did not load within 300 ms/],
    [
      'a bad version',
      stock().replace('1.2.3', '1.2'),
      /version must be a semantic version such as '1\.0\.0', not "1\.2"/,
    ],
    ['a bad type', stock().replace("'connector'", "'plugin'"), /type must be 'connector' or 'exec', not "plugin"/],
    [
      'a bad direction',
      stock().replace("'source'", "'sideways'"),
      /actions\.get_level\.direction must be 'source', 'target' or 'phase', not "sideways"/,
    ],
    ['a bad effect', stock().replace("'read'", "'maybe'"), /actions\.get_level\.effect must be .*, not "maybe"/],
    [
      'permissions that are no list',
      stock().replace("effect: 'read',", "effect: 'read', permissions: 'stock:read',"),
      /get_level\.permissions must be a list of texts, or a function of the entry/,
    ],
    ['a misspelt field', stock().replace('effect:', 'efect:'), /unknown field 'efect'/],
    [
      'settings that are no schema',
      stock().replace(/settings: .*/, 'settings: {},'),
      /settings must be a Type\.Object/,
    ],
    [
      'an entry that is no object',
      stock().replace(/entry: .*/, 'entry: Type.String(),'),
      /get_level\.entry must be a Type\.Object/,
    ],
    [
      'an example that is no entry',
      stock().replace(/entry: /, "example: 'x', entry: "),
      /get_level\.example must be an entry/,
    ],
    ['nothing to do', stock().replace(/actions: \{[\s\S]*/, '})'), /the agent does nothing/],
  ]
  test.each(cases)('%s', async (_, text, reason) => {
    expect(await reasonFor(text)).toMatch(reason)
  })

  test.each(['Stock.ts', '1st.ts', 'a.b.ts', 'stock.js', 'README.md'])('the name %s', async name => {
    expect(await reasonFor(stock(), name)).not.toBeNull()
  })

  test('links and folders that are called like agents; other folders and dot files are nothing', async () => {
    const home = homeWith({ '.hidden.ts': 'syntax error(' })
    const elsewhere = homeWith({ 'stock.ts': stock() })
    symlinkSync(join(elsewhere, 'agents/stock.ts'), join(home, 'agents/linked.ts'))
    mkdirSync(join(home, 'agents/called.ts'))
    mkdirSync(join(home, 'agents/shared'))
    const { skipped } = await discover({ home })
    expect(skipped.map(({ file }) => file.split('/').at(-1)).sort()).toEqual(['called.ts', 'linked.ts'])
  })
})

test('imports are followed through files beside the agent', async () => {
  const home = homeWith({ 'probe.ts': `import './shared/one.ts'\n${stock()}` })
  mkdirSync(join(home, 'agents/shared'))
  writeFileSync(join(home, 'agents/shared/one.ts'), "import './two'\n")
  writeFileSync(join(home, 'agents/shared/two.ts'), "import './one.ts'\nimport 'left-pad-of-nobody'\n")
  const { skipped } = await discover({ home })
  expect(skipped[0]).toMatchObject({ file: join(home, 'agents/probe.ts') })
  expect(skipped[0]!.reason).toContain("shared/two.ts:2: imports 'left-pad-of-nobody'")
})

test('the type checker finds the modules of cadre where agents find them', () => {
  const { paths } = tsconfig.compilerOptions
  expect(Object.entries(paths).map(([name, [path]]) => [name, join(REPOSITORY, path!)])).toEqual(
    Object.entries(MODULES),
  )
})

test('a module of cadre that does not exist is refused', async () => {
  expect(await reasonFor("import { x } from 'cadre/nothing'\nexport default x")).toMatch(
    /imports 'cadre\/nothing', which is not installed/,
  )
})

test('a file in an empty home, offline, from another working directory, in a process of its own', async () => {
  const home = homeWith({
    'stock.ts': stock(
      "import { parse } from 'yaml'\nimport { join } from 'node:path'\nimport { $ } from 'bun'\nimport { wordOf } from 'cadre/vendors'\nvoid [parse, join, $, wordOf]",
    ),
  })
  const program = join(folder(), 'program.ts')
  writeFileSync(
    program,
    `import { discover, findAgents } from ${JSON.stringify(join(REPOSITORY, 'lib/agent/catalogue.ts'))}
     const { names, skipped } = await discover({ home: ${JSON.stringify(home)} })
     console.log(JSON.stringify({ names: names(), skipped }))`,
  )
  const offline = { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }
  const child = Bun.spawnSync([process.execPath, program], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', HOME: home, ...offline },
  })
  expect(child.stderr.toString()).toBe('')
  const { names, skipped } = JSON.parse(child.stdout.toString())
  expect(names).toContain('stock')
  expect(skipped).toEqual([])
})
