// The module `cadre` is small, and its own manual: each name is documented with an example where it is declared, which
// is what editors show; so is `cadre/testing`. `cadre/vendors` has only what the built-in agents use.

import { expect, test } from 'bun:test'
import { dirname, join } from 'node:path'
import { MODULES } from '../../lib/agent/imports.ts'

const exportsOf = async (module: string) =>
  Array.from((await Bun.file(module).text()).matchAll(/export (?:type )?\{([^}]+)\} from '([^']+)'/g)).flatMap(
    ([, names, file]) =>
      names!.split(',').flatMap(name => {
        const bare = name.replace('type ', '').trim()
        return bare ? [{ name: bare, file: join(dirname(module), file!) }] : []
      }),
  )
const exported = await exportsOf(MODULES.cadre!)
const forTests = await exportsOf(MODULES['cadre/testing']!)

test('it has the names that an author needs, and few', async () => {
  const values = Object.keys(await import(MODULES.cadre!))
  expect(values).toEqual(expect.arrayContaining(['agent', 'secret', 'Type', 'AgentError']))
  expect(exported.map(({ name }) => name)).toEqual(expect.arrayContaining(values))
  expect(exported.length).toBeLessThanOrEqual(34)
})

test('docs/write-an-agent.md lists them', async () => {
  const readme = await Bun.file(join(import.meta.dir, '../../docs/write-an-agent.md')).text()
  const [table] = /(^\|.*\n)+/m.exec(
    readme.slice(readme.indexOf('The module `cadre` exports everything that an agent needs')),
  )!
  const listed = Array.from(table.matchAll(/`(\w+)`/g), ([, name]) => name!)
  expect(listed.sort()).toEqual(exported.map(({ name }) => name).sort())
})

test('cadre/vendors has nothing that no built-in agent imports', async () => {
  const agents = join(import.meta.dir, '../../agents')
  const used = new Set<string>()
  for (const file of new Bun.Glob('*.ts').scanSync(agents)) {
    const source = await Bun.file(join(agents, file)).text()
    const names = /import \{([^}]+)\} from 'cadre\/vendors'/.exec(source)?.[1] ?? ''
    for (const name of names.split(',')) used.add(name.replace('type ', '').trim())
  }
  const values = Object.keys(await import(MODULES['cadre/vendors']!))
  expect(values.length).toBeGreaterThan(10)
  expect(values.filter(name => !used.has(name))).toEqual([])
})

test('cadre/testing has fewer still', async () => {
  const values = Object.keys(await import(MODULES['cadre/testing']!))
  expect(values.sort()).toEqual(['drivenClock', 'fakeVendor', 'testAgent'])
  expect(forTests.map(({ name }) => name)).toEqual(expect.arrayContaining(values))
  expect(forTests.length).toBeLessThanOrEqual(12)
})

test.each([...exported, ...forTests])('$name is documented with an example', async ({ name, file }) => {
  const source = await Bun.file(file).text()
  const declaration = new RegExp(`^export (?:async )?(?:function\\*?|const|class|interface|type) ${name}\\b`, 'm')
  const before = source.slice(0, source.search(declaration))
  const doc = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(before)?.[1] ?? ''
  expect(doc).toMatch(/\* [^@\s]/)
  expect(doc).toContain('@example')
})
