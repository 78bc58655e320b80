// One contract: each path of the API stands once in lib, in the declaration of its call. Clients, pages and servers import it.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'
import { DECLARED, methodOf } from './support/declared-calls.ts'

const root = join(import.meta.dir, '..')

/** Where each path stands as a text: files, one for each time. */
const places = new Map<string, string[]>()
for (const file of new Glob('lib/**/*.{ts,tsx}').scanSync(root)) {
  // The APIs of vendors have paths of this form, too.
  if (file.startsWith('lib/vendors/')) continue
  const text = (await Bun.file(join(root, file)).text()).replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '')
  for (const [, path] of text.matchAll(/['"`](\/v1(?:\/[a-z_]+)+|\/metrics|\/schema\/team\.json)\b/g)) {
    places.set(path!, [...(places.get(path!) ?? []), file])
  }
}

test('each path of the API stands once in lib, where its call is declared', () => {
  const wrong = [...places].flatMap(([path, files]) => {
    const elsewhere = files.filter(file => !file.startsWith('lib/wire/calls/'))
    return elsewhere.length > 0 || files.length > 1 ? [`${path}: ${files.join(', ')}`] : []
  })
  expect(wrong).toEqual([])
  expect(places.size).toBeGreaterThan(90)
})

test('a server has one declaration of each of its routes', () => {
  for (const side of ['hub', 'daemon'] as const) {
    const names = DECLARED.filter(({ call }) => call[side]).map(({ call }) => `${methodOf(call)} ${call.path}`)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  }
})

test('each declared path is found as it is looked for', () => {
  expect(DECLARED.map(({ call }) => call.path).filter(path => !places.has(path))).toEqual([])
})
