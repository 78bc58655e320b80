// The key of a home is there whole or not at all. A daemon that was killed while it made the file left an empty one,
// and every phase with a small file failed from then on: "Invalid key length".

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Seal } from '../../../lib/run/files/seal.ts'
import { folder } from '../../support/folder.ts'
import { environmentAt } from '../../support/program.ts'

test('an empty key that a kill left is replaced', () => {
  const home = folder()
  writeFileSync(join(home, 'key'), '')
  const seal = new Seal(home)
  expect(new Seal(home).open('place', seal.close('place', 'text')).toString()).toBe('text')
  expect(statSync(join(home, 'key')).mode & 0o777).toBe(0o600)
})

test('a key that is replaced takes effect at once, also when it is put back', () => {
  const home = folder()
  const file = join(home, 'key')
  const seal = new Seal(home)
  const first = seal.close('place', 'text')
  const key = readFileSync(file)
  writeFileSync(`${file}.new`, crypto.getRandomValues(new Uint8Array(32)))
  renameSync(`${file}.new`, file)
  expect(() => seal.open('place', first)).toThrow()
  const second = seal.close('place', 'text')
  expect(new Seal(home).open('place', second).toString()).toBe('text')
  writeFileSync(file, key)
  expect(seal.open('place', first).toString()).toBe('text')
  expect(() => seal.open('place', second)).toThrow()
})

test('a key of another length is not replaced, because something may be sealed with it', () => {
  const home = folder()
  writeFileSync(join(home, 'key'), 'short')
  expect(() => new Seal(home).close('place', 'text')).toThrow('must be the 32 bytes of a key, but has 5')
  expect(readFileSync(join(home, 'key'), 'utf8')).toBe('short')
})

test('of processes that make the key at once, all use the same one', async () => {
  const home = folder()
  const program = `
    const { Seal } = await import(${JSON.stringify(join(import.meta.dir, '../../../lib/run/files/seal.ts'))})
    process.stdout.write(new Seal(${JSON.stringify(home)}).close('place', 'text').toString('base64'))`
  const sealed = await Promise.all(
    Array.from({ length: 4 }, () =>
      new Response(Bun.spawn([process.execPath, '-e', program], { env: environmentAt(home) }).stdout).text(),
    ),
  )
  for (const text of sealed) expect(new Seal(home).open('place', Buffer.from(text, 'base64')).toString()).toBe('text')
  expect(readdirSync(home).filter(name => name.startsWith('key'))).toEqual(['key'])
})
