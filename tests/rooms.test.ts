// A folder of lib that is a room is entered by its door only, and rooms do not go round in circles, types included.

import { expect, test } from 'bun:test'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { Glob } from 'bun'
import { MODULES } from '../lib/agent/imports.ts'

const root = join(import.meta.dir, '..')
/** Rooms with rooms inside, whose doors bear the names of their folders. */
const HOUSES: Record<string, string> = {
  'lib/team': 'lib/team/team.ts',
  'lib/run': 'lib/run/engine.ts',
  'lib/vendors': 'lib/vendors/vendors.ts',
}

/** What each file of ours imports, types included, as paths from the root; `cadre` and its like are files, too. */
const imports = new Map<string, string[]>()
for (const file of new Glob('{lib,agents,db,bench}/**/*.ts').scanSync(root)) {
  const text = await Bun.file(join(root, file)).text()
  const found = text.matchAll(/(?:from|import|import\(|require\() ?'(\.[^']+|cadre(?:\/[a-z]+)?)'/g)
  imports.set(
    file,
    Array.from(found, ([, name]) => relative(root, MODULES[name!] ?? resolve(root, dirname(file), name!))),
  )
}

const edges = (of: (file: string, path: string) => boolean): [file: string, path: string][] =>
  [...imports].flatMap(([file, paths]) =>
    paths.filter(path => of(file, path)).map((path): [string, string] => [file, path]),
  )
const shown = (edges: [string, string][]): string[] => edges.map(edge => edge.join(' → '))

for (const [house, door] of Object.entries(HOUSES)) {
  const isInside = (path: string) => path.startsWith(`${house}/`)

  test(`${house} is entered by ${door}`, () => {
    const from = edges((file, path) => !isInside(file) && isInside(path))
    expect(from.length).toBeGreaterThan(5)
    expect(shown(from.filter(([, path]) => path !== door))).toEqual([])
  })

  test(`the rooms of ${house} are entered by theirs`, () => {
    const past = edges((file, path) => {
      const room = dirname(path)
      if (!isInside(file) || !isInside(path) || room === dirname(file) || room === house) return false
      return path !== `${room}/${basename(room)}.ts`
    })
    expect(shown(past)).toEqual([])
  })

  test(`the rooms of ${house} import each other in one direction, and none its house`, () => {
    const rooms = new Map<string, Set<string>>()
    for (const [file, path] of edges((file, path) => isInside(file) && isInside(path))) {
      const [from, to] = [dirname(file), dirname(path)]
      if (from !== to && from !== house) rooms.set(from, (rooms.get(from) ?? new Set()).add(to))
    }
    const circles: string[] = []
    const walk = (room: string, path: readonly string[]): void => {
      if (path.includes(room)) return void circles.push([...path.slice(path.indexOf(room)), room].join(' → '))
      for (const next of rooms.get(room) ?? []) walk(next, [...path, room])
    }
    for (const room of rooms.keys()) walk(room, [])
    expect(circles).toEqual([])
  })
}

test('what every agent stands on knows no vendor', () => {
  const isFrame = (file: string) => file.startsWith('lib/agent/')
  expect(edges(isFrame).length).toBeGreaterThan(50)
  expect(shown(edges((file, path) => isFrame(file) && path.startsWith('lib/vendors/')))).toEqual([])
})

test('lib/wire imports leaves of lib and nothing else, so that both sides can import it', () => {
  const from = edges(file => file.startsWith('lib/wire/'))
  expect(from.length).toBeGreaterThan(20)
  expect(shown(from.filter(([, path]) => !/^lib\/(wire\/)?[a-z-]+\.ts$/.test(path)))).toEqual([])
})

test('files of lib that lie in no folder import no folder but lib/wire', () => {
  const from = edges(file => /^lib\/[a-z-]+\.ts$/.test(file))
  expect(from.length).toBeGreaterThan(4)
  expect(shown(from.filter(([, path]) => !/^lib\/(wire\/)?[a-z-]+\.ts$/.test(path)))).toEqual([])
})

test('db imports leaves of lib and lib/wire, never a program that stands on it', () => {
  const from = edges(file => file.startsWith('db/'))
  expect(from.length).toBeGreaterThan(10)
  expect(shown(from.filter(([, path]) => !/^(db\/|lib\/(wire\/)?[a-z-]+\.ts$)/.test(path)))).toEqual([])
})

test('agents import the modules of cadre, and no file', () => {
  const isAgent = (file: string) => file.startsWith('agents/')
  expect(edges(isAgent).length).toBeGreaterThan(12)
  const modules = Object.values(MODULES).map(path => relative(root, path))
  expect(shown(edges((file, path) => isAgent(file) && !modules.includes(path)))).toEqual([])
})

for (const house of [...Object.keys(HOUSES), 'lib/wire']) {
  test(`no file of ${house} imports itself through others`, () => {
    const isInside = (path: string) => path.startsWith(`${house}/`)
    const done = new Set<string>()
    const circles: string[] = []
    const walk = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
      if (done.has(file) || path.includes(file)) return
      for (const next of imports.get(file) ?? []) if (isInside(next)) walk(next, [...path, file])
      done.add(file)
    }
    for (const file of imports.keys()) if (isInside(file)) walk(file, [])
    expect(circles).toEqual([])
  })
}
