// Programs decide by the `code` and `reason` of an error, never by the words of its message, which may be improved at
// any time. Only the messages of other programs are read, because they have nothing else.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'

const root = join(import.meta.dir, '..')

/** The files that read messages, with what these are, and how often each does. */
const OUTSIDE: Readonly<Record<string, readonly [times: number, whose: string]>> = {
  'db/hub/postgres-refusals.ts': [1, 'PostgreSQL, which has no code of its own for a plan that no longer fits'],
  'lib/daemon/cli/failure.ts': [1, 'decides nothing: a message that ends with its details is printed without them'],
  'lib/error.ts': [1, 'decides nothing: details that the message repeats are not printed twice'],
  'lib/team/cel/hints.ts': [5, 'errors of cel-js, whose codes do not tell these mistakes apart'],
  'lib/team/cel/instead.ts': [3, 'errors of cel-js, which say which value is null only in the message'],
  'lib/team/cel/lacking.ts': [1, 'errors of cel-js, which name the key that is missing only in the message'],
  'lib/wire/protocol.ts': [1, 'errors of older hubs, which have a number only as a message'],
  'lib/vendors/atlassian/confluence-attachments.ts': [1, 'a field of Confluence that carries the mark of an entry'],
  'lib/vendors/atlassian/confluence-pages.ts': [2, 'the same field, and the refusal of a title, which has no code'],
  'lib/web/daemon/edit.tsx': [1, 'reads the place that begins each mistake of a team, as compilers write it'],
  'lib/web/daemon/plan.tsx': [1, 'decides nothing: a path that the message repeats is not shown twice'],
  'lib/vendors/smtp.ts': [2, 'errors of nodemailer and of mail servers, which have no code for TLS and greetings'],
}

const MESSAGE = String.raw`(?:\b\w*[mM]essage|\bmessageOf\([^)\n]*\))`
const READS = [
  new RegExp(String.raw`${MESSAGE}[?!]?\.(includes|startsWith|endsWith|match|matchAll|search|indexOf)\(`),
  new RegExp(String.raw`\.(test|exec)\((?:[^)\n]*[ .(])?${MESSAGE}`),
  new RegExp(String.raw`${MESSAGE} ?[!=]==? ?['"\`/]`),
  new RegExp(String.raw`['"\`] [!=]== (?:\w+\??\.)*${MESSAGE}`),
  new RegExp(String.raw`\b(Number|parse\w*|BigInt)\((?:\w+\??\.)*${MESSAGE}\b`),
  new RegExp(String.raw`switch \((?:\w+\??\.)*${MESSAGE}\)`),
]

/** `typeof message === 'string'` asks for a type. An empty message has no words. */
const HARMLESS = /typeof [\w?.]+ [!=]== '\w+'|[!=]== ''/g

function readsIn(text: string): number {
  const code = text.split('\n').map(line => line.replace(/^\s*(\/\/|\/?\*).*/, '').replaceAll(HARMLESS, ''))
  return code.filter(line => READS.some(pattern => pattern.test(line))).length
}

test('each way to decide by a message is seen', () => {
  const ways = [
    `if (error.message.includes('lacks')) return`,
    `if (/grant lacks/.test(message)) return`,
    `const [, key] = /key (.*)/.exec(error.message) ?? []`,
    `if (message === 'is required') return`,
    `if ('is required' === problem.message) return`,
    `if (messageOf(error).startsWith('no run')) return`,
    'switch (error.message) {',
    'const acked = Number(detail?.message)',
    'const body = JSON.parse(error.message)',
  ]
  expect(ways.filter(way => readsIn(way) !== 1)).toEqual([])
  expect(readsIn(`if (typeof error.message === 'string' && message !== '') {}\n// /lacks/.test(message)`)).toBe(0)
})

test('only messages of other programs are read', async () => {
  const found: Record<string, number> = {}
  for (const file of new Glob('{agents,db,lib}/**/*.{ts,tsx}').scanSync(root)) {
    const reads = readsIn(await Bun.file(join(root, file)).text())
    if (reads > 0) found[file] = reads
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(OUTSIDE).map(([file, [times]]) => [file, times])))
})
