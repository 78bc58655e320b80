// Attacks by packages that are small to send and large to hold, deep, or odd: each is refused with what is wrong or taken
// as it is, soon, and the hub goes on.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { packageDigest } from '../../../lib/wire/records/package-files.ts'
import type { PackageFile } from '../../../lib/wire/records/packages.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(async () => {
  expect((await hub.log()).filter(line => line.includes('request failed'))).toEqual([])
  await hub.stop()
})

const MIB = 1024 * 1024
const file = (path: string, text: string): PackageFile => ({
  path,
  content_base64: Buffer.from(text).toString('base64'),
})
const head = (name = '@admin/bomb') => `name: "${name}"\nversion: 1.0.0\n`
const work = 'phases: [{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }]\n'
const team = (text: string) => [file('team.yml', text)]
const phases = (count: number, of: (n: number) => string) =>
  `phases:\n${Array.from({ length: count }, (_, n) => `  - ${of(n)}\n`).join('')}`
const exec = (name: string, more = '') => `{ name: ${name}, agent: exec, ${more} commands: [{ name: c, run: "true" }] }`

/** Ten levels of lists, each with ten times the one before. */
const ALIASES = `a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${Array.from(
  { length: 9 },
  (_, n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join(', ')}]\n`,
).join('')}`

const plain = () => file('team.yml', head() + work)

const cases: [what: string, files: () => PackageFile[]][] = [
  // Many and large
  ['ten thousand files', () => [plain(), ...Array.from({ length: 10_000 }, (_, n) => file(`f${n}`, ''))]],
  ['the same file twice', () => [plain(), file('x', ''), file('x', '')]],
  ['a file of 11 MiB', () => [plain(), file('x', 'x'.repeat(11 * MIB))]],
  ['a team.yml of 9 MiB', () => team(`${head() + work}# ${'x'.repeat(9 * MIB)}\n`)],
  ['a path of a hundred folders of four letters', () => [plain(), file(`${'aaaa/'.repeat(100)}x`, '')]],
  ['a path of a thousand folders', () => [plain(), file(`${'a/'.repeat(1_000)}x`, '')]],
  ['content that is no base64', () => [plain(), { path: 'x', content_base64: '%%%' }]],
  ['content with line breaks', () => [plain(), { path: 'x', content_base64: 'AAAA\nAAAA' }]],
  ['1,001 phases', () => team(head() + phases(1_001, n => exec(`p${n}`)))],
  ['1,001 teams', () => [plain(), ...Array.from({ length: 1_001 }, (_, n) => file(`t${n}/team.yml`, head() + work))]],
  // YAML
  ['aliases of aliases', () => team(`${head()}${ALIASES}${work}`)],
  ['an alias of itself', () => team(`${head()}inputs: &a [*a]\n${work}`)],
  [
    'lists in lists, 100,000 deep',
    () => team(`${head()}inputs: ${'['.repeat(100_000)}${']'.repeat(100_000)}\n${work}`),
  ],
  ['mappings in mappings, 5,000 deep', () => team(`${head()}inputs: ${'{a: '.repeat(5_000)}1${'}'.repeat(5_000)}\n`)],
  ['a million lines', () => team(`${head()}${'\n'.repeat(1_000_000)}${work}`)],
  [
    'a tag that makes code',
    () => team(`${head()}description: !!js/function 'function () { process.exit() }'\n${work}`),
  ],
  ['a tag of Python', () => team(`${head()}description: !!python/object/apply:os.system [id]\n${work}`)],
  ['a binary text', () => team(`${head()}description: !!binary aGVsbG8=\n${work}`)],
  ['a merge', () => team(`${head()}<<: { description: x }\n${work}`)],
  ['a key twice', () => team(`${head()}${head()}${work}`)],
  ['a key of every object', () => team(`${head()}__proto__: { polluted: true }\n${work}`)],
  ['two documents', () => team(`${head() + work}---\n${head() + work}`)],
  [
    'bytes that are no UTF-8',
    () => [{ path: 'team.yml', content_base64: Buffer.from([0xff, 0xfe, 0]).toString('base64') }],
  ],
  ['NUL', () => team(`${head()}description: "\0"\n${work}`)],
  ['no text at all', () => team('')],
  ['a number alone', () => team('1e999')],
  // Numbers
  ['a concurrency beyond all numbers', () => team(`${head()}concurrency: 1e999\n${work}`)],
  ['a concurrency of 10^30', () => team(`${head()}concurrency: 1${'0'.repeat(30)}\n${work}`)],
  ['a concurrency of a million digits', () => team(`${head()}concurrency: ${'9'.repeat(900_000)}\n${work}`)],
  ['a concurrency that is not a number', () => team(`${head()}concurrency: .nan\n${work}`)],
  ['a negative concurrency', () => team(`${head()}concurrency: -1\n${work}`)],
  ['10^12 attempts', () => team(head() + phases(1, () => exec('a', 'retry: { attempts: 1000000000000 },')))],
  ['a version of huge numbers', () => team(`name: "@admin/bomb"\nversion: 1.${'9'.repeat(400)}.0\n${work}`)],
  // Teams
  ['a team that leaves the package', () => team(head() + phases(1, () => '{ name: a, type: team, team: ../../etc }'))],
  ['a team by an absolute path', () => team(head() + phases(1, () => '{ name: a, type: team, team: /etc }'))],
  ['a phase that waits for itself', () => team(head() + phases(1, () => exec('a', 'depends_on: [a],')))],
  [
    'a circle of a thousand phases',
    () => team(head() + phases(1_000, n => exec(`p${n}`, `depends_on: [p${(n + 1) % 1_000}],`))),
  ],
  // Expressions
  [
    'an expression of 100,000 brackets',
    () => team(head() + phases(1, () => exec('a', `when: "${'('.repeat(100_000)}true${')'.repeat(100_000)}",`))),
  ],
  ['an expression of 9,000 nots', () => team(head() + phases(1, () => exec('a', `when: "${'!'.repeat(9_000)}true",`)))],
  [
    'a text of 100,000 templates',
    () =>
      team(
        head() +
          phases(
            1,
            () =>
              `{ name: a, agent: exec, commands: [{ name: c, env: { A: "${'{{ run.id }}'.repeat(60_000)}" }, run: "true" }] }`,
          ),
      ),
  ],
]

/** A check must end well before this; the hub's own limit is a minute. */
const SOON_MS = 30_000

test.each(cases)(
  '%s is refused',
  async (_, files) => {
    const started = performance.now()
    const { status, error } = await hub.call(hub.admin, 'teams/publish', { files: files() })
    expect([status, error?.code]).toEqual([expect.any(Number), expect.stringMatching(/^(invalid_request|too_large)$/)])
    expect(performance.now() - started).toBeLessThan(SOON_MS)
    expect((await fetch(`${hub.url}/health`)).status).toBe(200)
    expect(Object.keys({})).toEqual([])
  },
  60_000,
)

test('a body with a compressed package in it is not unpacked', async () => {
  const body = Bun.gzipSync(Buffer.from(JSON.stringify({ files: team(head() + work) })))
  const headers = {
    'content-type': 'application/json',
    'content-encoding': 'gzip',
    authorization: `Bearer ${hub.admin}`,
  }
  const reply = await fetch(`${hub.url}/v1/teams/publish`, { method: 'POST', headers, body })
  expect(reply.status).toBe(415)
})

test('an archive is a file like others: nothing unpacks it', async () => {
  const archive = Buffer.from(Bun.gzipSync(new Uint8Array(8 * MIB)))
  const files = [
    ...team(head('@admin/archive') + work),
    { path: 'x.tar.gz', content_base64: archive.toString('base64') },
  ]
  const { bytes, sha256 } = await hub.ok(hub.admin, 'teams/publish', { files })
  expect(bytes).toBe(archive.length + Buffer.byteLength(head('@admin/archive') + work))
  const sent = await hub.ok(hub.admin, 'teams/download', { team: '@admin/archive' })
  expect([sent.sha256, packageDigest(sent.files)]).toEqual([sha256, sha256])
})

describe('a scope in the place of @local', () => {
  const long = 'a'.repeat(63)
  beforeAll(() => hub.ok(hub.admin, 'scopes/create', { org_id: 1, slug: long }))

  test('makes no package larger than one may be', async () => {
    const grows = `# ${'@local/'.repeat(1_200_000)}\n`
    const files = [...team(head('@local/grows') + work), file('beside/team.yml', head('@local/beside') + work + grows)]
    const { status, error } = await hub.call(hub.admin, 'teams/publish', { scope: long, files })
    expect([status, error?.code]).toEqual([413, 'too_large'])
  }, 60_000)
})
