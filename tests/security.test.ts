// docs/security.md promises nothing that no test shows: every test that it names is there, by file and title.

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const text = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
/** What follows is what cadre does not do. */
const END = '\n## What is not protected'
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

test('each statement of what is protected names one', () => {
  const statements = text
    .slice(text.indexOf('\n## '), text.indexOf(END))
    .split(/\n(?=- |\n)/)
    .filter(each => each.startsWith('- '))
  expect(statements.length).toBeGreaterThan(25)
  for (const statement of statements) expect(statement).toMatch(/`tests\/[\w/-]+\.test\.ts`\s+"/)
})
