// The house of cadre, counted from the imports of its files, types included: folders stand in an order and import only
// what stands below them, no folders import each other in a circle, and a room is entered by its door.

import { expect, test } from 'bun:test'
import { dirname, join, relative, resolve } from 'node:path'
import { Glob } from 'bun'
import { MODULES } from '../lib/agent/imports.ts'

const root = join(import.meta.dir, '..')

/** From the bottom to the top. A folder imports itself and those of the rows before its own; `lib` is its own files. */
const ORDER: readonly string[][] = [
  ['lib'],
  ['lib/files', 'lib/schema', 'lib/secrets', 'lib/text'],
  ['lib/audit', 'lib/log', 'lib/program', 'lib/triggers'],
  ['lib/wire'],
  ['db', 'lib/agent', 'lib/http'],
  ['lib/settings', 'lib/team', 'lib/vendors', 'lib/web'],
  ['agents', 'lib/firing', 'lib/run', 'lib/testing'],
  ['lib/daemon', 'lib/hub'],
  ['.'],
  ['deploy'],
  ['bench'],
]

/** The door of each folder of lib, which is the only file of it that others import; null where any file is open. */
const DOORS: Readonly<Record<string, string | null>> = {
  lib: null,
  'lib/agent': null,
  'lib/agent/commands': null,
  'lib/agent/core': null,
  'lib/agent/files': null,
  'lib/agent/net': null,
  'lib/audit': null,
  'lib/daemon/access': null,
  'lib/daemon/cli': null,
  'lib/daemon/cli/backend': null,
  'lib/daemon/cli/hub': null,
  'lib/daemon/cli/kit': null,
  'lib/daemon/cli/lsp': null,
  'lib/daemon/cli/machine': null,
  'lib/daemon/cli/runs': null,
  'lib/daemon/cli/teams': null,
  'lib/daemon/cli/terminal': null,
  'lib/daemon/cli/triggers': null,
  'lib/daemon/home': null,
  'lib/daemon/home/chores': null,
  'lib/daemon/link': null,
  'lib/daemon/link/outbox': 'outbox.ts',
  'lib/daemon/packages': null,
  'lib/daemon/routes': null,
  'lib/daemon/runs': null,
  'lib/daemon/teams': null,
  'lib/daemon/tells': null,
  'lib/daemon/triggers': null,
  'lib/files': null,
  'lib/firing': null,
  'lib/http': null,
  'lib/http/openapi': null,
  'lib/hub': null,
  'lib/hub/access': null,
  'lib/hub/artifacts': null,
  'lib/hub/backups': 'backups.ts',
  'lib/hub/chains': null,
  'lib/hub/chores': null,
  'lib/hub/cli': null,
  'lib/hub/core': null,
  'lib/hub/keys': null,
  'lib/hub/lineage': null,
  'lib/hub/packages': 'packages.ts',
  'lib/hub/queue': null,
  'lib/hub/reports': null,
  'lib/hub/routes': null,
  'lib/hub/tells': null,
  'lib/hub/triggers': null,
  'lib/hub/webhooks': null,
  'lib/log': null,
  'lib/program': null,
  'lib/run': 'engine.ts',
  'lib/run/attempt': 'attempt.ts',
  'lib/run/core': 'core.ts',
  'lib/run/effects': 'effects.ts',
  'lib/run/files': 'files.ts',
  'lib/run/search': 'search.ts',
  'lib/run/steps': 'steps.ts',
  'lib/run/steps/kinds': null,
  'lib/run/steps/phase': null,
  'lib/run/steps/run': null,
  'lib/run/steps/state': null,
  'lib/run/steps/tree': null,
  'lib/run/store': 'store.ts',
  'lib/run/views': 'views.ts',
  'lib/schema': null,
  'lib/secrets': null,
  'lib/settings': 'settings.ts',
  'lib/team': 'team.ts',
  'lib/team/cel': 'cel.ts',
  'lib/team/compile': 'compile.ts',
  'lib/team/editor': 'editor.ts',
  'lib/team/model': 'model.ts',
  'lib/team/yaml': 'yaml.ts',
  'lib/testing': 'testing.ts',
  'lib/text': null,
  'lib/triggers/hook': null,
  'lib/triggers/schedule': null,
  'lib/triggers/watch': null,
  'lib/vendors': 'vendors.ts',
  'lib/vendors/atlassian': null,
  'lib/vendors/chat': null,
  'lib/vendors/database': null,
  'lib/vendors/git': null,
  'lib/vendors/google': null,
  'lib/vendors/llm': null,
  'lib/vendors/markdown': null,
  'lib/vendors/records': null,
  'lib/vendors/s3': null,
  'lib/web': 'web.ts',
  'lib/web/daemon': null,
  'lib/web/hub': null,
  'lib/web/hub/kit': null,
  'lib/web/hub/people': null,
  'lib/web/kit': null,
  'lib/web/run': null,
  'lib/web/run/log': null,
  'lib/web/teams': null,
  'lib/web/triggers': null,
  'lib/wire': null,
  'lib/wire/calls': null,
  'lib/wire/records': null,
  'lib/wire/why': null,
}

const CASTS_AT_MOST = 10
/** A room with more files says nothing any more. */
const FILES_AT_MOST = 25

interface Import {
  from: string
  to: string
}

const texts = new Map<string, string>()
for (const pattern of ['*.ts', '{agents,bench,db,deploy,lib}/**/*.{ts,tsx}']) {
  for (const file of new Glob(pattern).scanSync(root)) texts.set(file, await Bun.file(join(root, file)).text())
}

/** What the files of the product import of each other; `cadre` and its like are files, too. */
const imports: Import[] = [...texts].flatMap(([from, text]) => {
  const names = text.matchAll(/(?:from|import|import\(|require\() ?'(\.[^']+|cadre(?:\/[a-z]+)?)'/g)
  const paths = Array.from(names, ([, name]) => relative(root, MODULES[name!] ?? resolve(root, dirname(from), name!)))
  return paths.filter(to => texts.has(to)).map(to => ({ from, to }))
})

const shown = (found: Import[]): string[] => found.map(({ from, to }) => `${from} → ${to}`)
const isIn = (folder: string, path: string): boolean => path.startsWith(`${folder}/`)

/** The folder of `ORDER` that a file stands in: `lib/run` of `lib/run/core/rows.ts`. */
function houseOf(path: string): string {
  const folders = dirname(path).split('/')
  return folders.slice(0, folders[0] === 'lib' ? 2 : 1).join('/')
}

/** Each circle once, as the path that goes round it. */
function circlesOf(edges: readonly [string, string][]): string[] {
  const next = new Map<string, Set<string>>()
  for (const [from, to] of edges) next.set(from, (next.get(from) ?? new Set()).add(to))
  const done = new Set<string>()
  const circles: string[] = []
  const walk = (node: string, path: readonly string[]): void => {
    if (path.includes(node)) return void circles.push([...path.slice(path.indexOf(node)), node].join(' → '))
    if (done.has(node)) return
    for (const to of next.get(node) ?? []) walk(to, [...path, node])
    done.add(node)
  }
  for (const node of next.keys()) walk(node, [])
  return circles
}

test('the imports of all files are seen', () => {
  expect(texts.size).toBeGreaterThan(300)
  expect(imports.length).toBeGreaterThan(1_000)
})

test('every folder has a place in the order', () => {
  const houses = new Set(Array.from(texts.keys(), houseOf))
  expect([...houses].sort()).toEqual(ORDER.flat().sort())
})

test('no folder imports one that stands beside or above it', () => {
  const rows = new Map(ORDER.flatMap((row, index) => row.map(house => [house, index] as const)))
  const upward = imports.filter(({ from, to }) => {
    const [mine, its] = [houseOf(from), houseOf(to)]
    return mine !== its && rows.get(mine)! <= rows.get(its)!
  })
  expect(shown(upward)).toEqual([])
})

test('no folders import each other in a circle, types included', () => {
  const edges = imports.map(({ from, to }): [string, string] => [dirname(from), dirname(to)])
  expect(circlesOf(edges.filter(([from, to]) => from !== to))).toEqual([])
})

test('no file imports itself through others, types included', () => {
  expect(circlesOf(imports.map(({ from, to }): [string, string] => [from, to]))).toEqual([])
})

test('no folder of lib has more files than a reader takes in at once', () => {
  const counts = Map.groupBy(texts.keys(), dirname)
  const large = [...counts].filter(([folder, files]) => /^lib\b/.test(folder) && files.length > FILES_AT_MOST)
  expect(large.map(([folder]) => folder)).toEqual([])
})

test('it is said of every folder of lib whether it has a door', () => {
  const folders = new Set(Array.from(texts.keys(), dirname).filter(folder => /^lib\b/.test(folder)))
  expect(Object.keys(DOORS)).toEqual([...folders].sort())
})

test('a room is entered by its door', () => {
  for (const [folder, door] of Object.entries(DOORS)) {
    if (door === null) continue
    const entering = imports.filter(({ from, to }) => !isIn(folder, from) && isIn(folder, to))
    expect([folder, entering.length > 0]).toEqual([folder, true])
    expect(shown(entering.filter(({ to }) => to !== `${folder}/${door}`))).toEqual([])
  }
})

test('agents import the modules of cadre, and no file', () => {
  const ofAgents = imports.filter(({ from }) => isIn('agents', from))
  expect(ofAgents.length).toBeGreaterThan(12)
  const modules = Object.values(MODULES).map(path => relative(root, path))
  expect(shown(ofAgents.filter(({ to }) => !modules.includes(to)))).toEqual([])
})

test('a cast that the compiler would refuse says why on the line before, and there are few', () => {
  const found = [...texts].flatMap(([file, text]) => {
    const lines = text.split('\n')
    return lines.flatMap((line, index) => {
      const code = line.replace(/(^\s*\*|^\s*\/\*|(^|\s)\/\/).*$/, '')
      if (!/\bas (unknown as|never|any)\b/.test(code)) return []
      return [{ place: `${file}:${index + 1}`, explained: /^\s*(\/\/|\/\*\*|\*)/.test(lines[index - 1] ?? '') }]
    })
  })
  expect(found.filter(({ explained }) => !explained).map(({ place }) => place)).toEqual([])
  expect(found.length).toBeLessThanOrEqual(CASTS_AT_MOST)
})

test('every file and folder that the documents name is there', async () => {
  const files = [...texts.keys(), ...new Glob('{db,tests}/**/*').scanSync(root)]
  const named: string[] = []
  for (const document of ['docs/architecture.md', 'CONTRIBUTING.md']) {
    const text = await Bun.file(join(root, document)).text()
    named.push(...Array.from(text.matchAll(/`([\w-]+(?:\/[\w-]+)*(?:\.tsx?|\/))`/g), ([, path]) => path!))
  }
  expect(named.length).toBeGreaterThan(100)
  const isThere = (path: string) =>
    files.some(file => (path.endsWith('/') ? `/${file}`.includes(`/${path}`) : `/${file}`.endsWith(`/${path}`)))
  expect(named.filter(path => !isThere(path))).toEqual([])
})
