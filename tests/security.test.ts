// docs/security.md promises nothing that no test shows: its proofs are rows of docs/security-proofs.md, and every test that
// a row names is there, by file and title.

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const text = readFileSync(join(ROOT, 'docs/security-proofs.md'), 'utf8')
const named = [...text.matchAll(/`(tests\/[\w/-]+\.test\.ts)`((?:\s+"[^"]+")+)/g)].map(([, file, titles]) => ({
  file: file!,
  titles: [...titles!.matchAll(/"([^"]+)"/g)].map(([, title]) => title!),
}))

test('the document names tests', () => expect(named.length).toBeGreaterThan(40))

test.each(named)('$file has what the document says of it', ({ file, titles }) => {
  expect(existsSync(join(ROOT, file))).toBe(true)
  // A title may stand on a line of its own.
  const source = readFileSync(join(ROOT, file), 'utf8').replaceAll(/\(\s+/g, '(')
  for (const title of titles) {
    const isTitle = new RegExp(`\\(\\s*(['"\`])${RegExp.escape(title)}\\1`).test(source)
    expect([title, isTitle]).toEqual([title, true])
  }
})

test('each statement names one', () => {
  const rows = text.split('\n').filter(line => line.startsWith('| '))
  const statements = rows.filter(row => !/^\| (---|statement|what leaked) \|/.test(row))
  expect(statements.length).toBeGreaterThan(100)
  for (const statement of statements) expect(statement).toMatch(/`tests\/[\w/-]+\.test\.ts`\s+"/)
})

test('each section of what is protected leads to its proofs', () => {
  const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
  const sections = Array.from(text.matchAll(/^## (.*)$/gm), ([, title]) => title!.toLowerCase())
  for (const title of sections.filter(each => each !== 'after a leak'))
    expect(page).toContain(`security-proofs.md#${title.replaceAll(',', '').replaceAll(' ', '-')}`)
})
