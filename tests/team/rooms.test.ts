// Each room of lib/team is entered by its door: no file reaches past a folder, and no file waits for itself.

import { expect, test } from 'bun:test'
import { dirname, join, relative, resolve } from 'node:path'
import { Glob } from 'bun'

const root = join(import.meta.dir, '../..')
const DOORS: Record<string, string> = {
  'lib/team': 'lib/team/team.ts',
  'lib/team/yaml': 'lib/team/yaml/yaml.ts',
  'lib/team/cel': 'lib/team/cel/cel.ts',
  'lib/team/compile': 'lib/team/compile/compile.ts',
}

/** What each file of ours imports, types included, as paths from the root. */
const imports = new Map<string, string[]>()
for (const file of new Glob('{lib,agents,db}/**/*.ts').scanSync(root)) {
  const text = await Bun.file(join(root, file)).text()
  const found = text.matchAll(/(?:from|import|require\() ?'(\.[^']+)'/g)
  imports.set(
    file,
    Array.from(found, ([, path]) => relative(root, resolve(root, dirname(file), path!))),
  )
}

test('other rooms enter lib/team by its door', () => {
  const past = [...imports]
    .filter(([file]) => !file.startsWith('lib/team/'))
    .flatMap(([file, paths]) => paths.filter(path => path.startsWith('lib/team/')).map(path => `${file} → ${path}`))
  expect(past.length).toBeGreaterThan(10)
  expect(past.filter(each => !each.endsWith('lib/team/team.ts'))).toEqual([])
})

test('the rooms inside are entered by theirs', () => {
  const past: string[] = []
  for (const [file, paths] of imports) {
    if (!file.startsWith('lib/team/')) continue
    for (const path of paths) {
      const room = dirname(path)
      if (room === dirname(file) || !(room in DOORS) || room === 'lib/team') continue
      if (path !== DOORS[room]) past.push(`${file} → ${path}`)
    }
  }
  expect(past).toEqual([])
})

test('no file of lib/team imports itself through others', () => {
  const done = new Set<string>()
  const circles: string[] = []
  const walk = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file) || path.includes(file)) return
    for (const next of imports.get(file) ?? []) if (next.startsWith('lib/team/')) walk(next, [...path, file])
    done.add(file)
  }
  for (const file of imports.keys()) if (file.startsWith('lib/team/')) walk(file, [])
  expect(circles).toEqual([])
})
