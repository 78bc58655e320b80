// A secret is masked whichever way its characters are written and wherever a line of it ends; of an address only the
// credentials are.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { credentialsIn } from '../../lib/secrets/secret-forms.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const each = (text: string, one: (character: string) => string) => [...text].map(one).join('')
const units = (text: string, one: (unit: string) => string) => text.split('').map(one).join('')
const bytes = (text: string, one: (byte: string, code: number) => string) =>
  [...Buffer.from(text)].map(code => one(code.toString(16).padStart(2, '0'), code)).join('')
const wrapped = (text: string, width: number, end: string) =>
  text.replace(new RegExp(`.{${width}}(?=.)`, 'gs'), `$&${end}`)

/** What may happen to a text on its way into a log. */
const WRITTEN: Record<string, (text: string) => string> = {
  JSON: text => JSON.stringify(text).slice(1, -1),
  'JSON with every character escaped': text =>
    units(text, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'JSON with slashes escaped': text => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'a string of C': text => bytes(text, hex => `\\x${hex}`),
  'octal escapes': text => bytes(text, (_, code) => `\\${code.toString(8).padStart(3, '0')}`),
  'a shell': text => text.replace(/[^\w]/gu, '\\$&'),
  URL: text => encodeURIComponent(text),
  'URL in lower case': text => encodeURIComponent(text).replace(/%../g, code => code.toLowerCase()),
  'URL with every byte escaped': text => bytes(text, hex => `%${hex}`),
  HTML: text =>
    text.replace(/[&<>"']/g, found => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[found] ?? '&#39;'),
  'HTML with every character escaped': text => each(text, character => `&#x${character.codePointAt(0)!.toString(16)};`),
  'HTML in decimal': text => each(text, character => `&#${character.codePointAt(0)};`),
  'quoted-printable': text =>
    bytes(text, (hex, code) =>
      code > 32 && code < 127 && code !== 61 ? String.fromCharCode(code) : `=${hex.toUpperCase()}`,
    ),
  'broken lines': text => wrapped(text, 5, '\n'),
  'broken lines, indented': text => wrapped(text, 7, '\r\n    '),
}
/** Forms that hide every character. */
const ENCODED: Record<string, (text: string) => string> = {
  base64: text => Buffer.from(text).toString('base64'),
  base64url: text => Buffer.from(text).toString('base64url'),
  'base64 of a longer text': text => Buffer.from(`user:${text}:x`).toString('base64'),
  'base64 in lines of 76': text => wrapped(Buffer.from(text).toString('base64'), 76, '\n'),
  'base64 in lines of 8': text => wrapped(Buffer.from(text).toString('base64'), 8, '\r\n  '),
  'base64 in JSON, in lines': text =>
    JSON.stringify(wrapped(Buffer.from(text).toString('base64'), 16, '\n')).slice(1, -1),
  hex: text => Buffer.from(text).toString('hex'),
  'hex in upper case': text => Buffer.from(text).toString('hex').toUpperCase(),
  'hex with colons': text => bytes(text, hex => `:${hex}`).slice(1),
  'hex with blanks, in lines': text =>
    wrapped(
      bytes(text, hex => ` ${hex}`),
      24,
      '\n',
    ).trim(),
  'hex with 0x': text => bytes(text, hex => `, 0x${hex}`).slice(4),
}
const SECRETS = [
  'hunter2hunter2',
  'pa"ss\\wö/r<d>&\'%41=3D+ x',
  `${'k'.repeat(9)}\\\\n0%25&amp;`,
  '🔑 key of the realm',
  `-----BEGIN KEY-----\n${Buffer.from('a private key of some length, in lines').toString('base64')}\nabcdefghijklmnop\n-----END KEY-----`,
]

/** The text as a stream gives it out, in chunks of random sizes. */
function streamed(secret: string, text: string, random: () => number): string {
  const stream = createRedactor([secret]).stream()
  const out: Uint8Array[] = []
  const all = Buffer.from(text)
  for (let at = 0; at < all.length; ) {
    const size = 1 + Math.floor(random() * 12)
    out.push(Buffer.from(stream.push(all.subarray(at, at + size))))
    at += size
  }
  return Buffer.concat([...out, stream.end()]).toString()
}

describe.each(SECRETS)('%p', secret => {
  const random = randomFrom(seedOf('masking'))
  const ways = Object.entries(WRITTEN)
  const forms = [...ways, ...Object.entries(ENCODED)]

  test.each(forms)('%s is masked', (name, write) => {
    for (const [before, after] of [
      ['', ''],
      ['token=', ' end'],
      ['100%', ';'],
      ['C:\\', '\n'],
      ['&', '&'],
    ] as const) {
      const written = write(secret)
      const text = before + written + after
      const masked = createRedactor([secret]).text(text)
      // What stands before it may read as the beginning of its first character, and of base64 the ends may belong to
      // something else.
      const left = masked.split('***')
      expect([masked, left.length]).toEqual([masked, 2])
      const [head, tail] = [left[0]!.slice(before.length), left[1]!.slice(0, left[1]!.length - after.length)]
      const most = name.startsWith('base64') ? 8 : 0
      expect([masked, head.length <= most, tail.length <= most]).toEqual([masked, true, true])
      expect(streamed(secret, text, random)).toBe(masked)
    }
  })

  test.each(ways)('%s, written again in another way, is masked', (_, write) => {
    for (const [name, again] of ways) {
      const text = `<${again(write(secret))}>`
      const masked = createRedactor([secret]).text(text)
      expect([name, masked]).toEqual([name, '<***>'])
      if (random() < 0.3) expect([name, streamed(secret, text, random)]).toEqual([name, masked])
    }
  })
})

test.each(SECRETS)('%p is masked in UTF-16, whichever byte comes first, and with colours in it', secret => {
  const random = randomFrom(seedOf('wide masking'))
  const little = Buffer.from(`x${secret}y`, 'utf16le')
  for (const wide of [little, Buffer.from(little).swap16()]) {
    for (const form of ['latin1', 'base64', 'hex'] as const) {
      const stream = createRedactor([secret]).stream()
      const written = form === 'latin1' ? wide : Buffer.from(wide.toString(form))
      const out = Buffer.concat([stream.push(written), stream.end()]).toString('latin1')
      expect([out, out.split('***').length]).toEqual([out, 2])
      expect(out.length).toBeLessThan(24)
    }
  }
  const coloured = `<${wrapped(secret, 3, '\x1b[0m\x1b[1;31m')}>`
  expect<unknown>(createRedactor([secret]).text(coloured)).toBe('<***>')
  expect(streamed(secret, coloured, random)).toBe('<***>')
})

test('ordinary text stays as it is', () => {
  const { text } = createRedactor([...SECRETS, 'postgres://ada:correct-horse@db.test:5432/sales'])
  for (const plain of [
    'GET https://acme.test/a%20b?x=1&y=2&amp;z=%7B%22a%22%3A1%7D 200 in 12ms',
    JSON.stringify({ nested: JSON.stringify({ a: 'C:\\new\\table', b: '"quoted"', c: '\u00e9\n' }) }),
    'connected to db.test:5432 as ada, database sales',
    'de:ad:be:ef 0x00 0x01 \\x00 =20 =3D &lt; &#39; \\u0041 \\',
    Buffer.from('an ordinary text of some length').toString('base64'),
    Buffer.from('an ordinary text of some length', 'utf16le').toString('latin1'),
    '\x1b[1m\x1b[31mhunter\x1b[0m of \x1b[Kthe 🔑 key\x1b]8;;https://acme.test\x07',
  ])
    expect<unknown>(text(plain)).toBe(plain)
})

test('much of what could begin a secret holds up nothing', () => {
  const { text, stream } = createRedactor(['hunter2hunter2', 'a/b=c%d&e\\f-secret', 'n0w-aaaa-secret'])
  const began = process.cpuUsage()
  for (const piece of [
    '\\',
    '%',
    '&',
    '=',
    '%5C',
    '\\u005c',
    '&#x5c;',
    '=\n',
    'a\n',
    '\\\\u00',
    '&amp',
    '\\n',
    'h\x1b[',
    'h\x1b[0m',
  ])
    expect(text(piece.repeat(4_000)).length).toBeGreaterThan(0)
  for (const lead of ['=', '\\', '%', '&', 'h', '\\x', '&#', '%5C'])
    for (const end of ['\n', '\r', '\r\n', ' \n ']) expect(text((lead + end).repeat(4_000)).length).toBeGreaterThan(0)
  const open = stream()
  let held = 0
  for (let sent = 0; sent < 200; sent++) held += 1_000 - open.push(Buffer.from('a\n'.repeat(500))).length
  expect(held).toBeLessThan(500_000)
  const { user } = process.cpuUsage(began)
  // A bound on work, not a measurement: each further power of the length would take minutes.
  expect(user / 1e6).toBeLessThan(60)
}, 120_000)

describe('of an address', () => {
  test.each([
    ['postgres://ada:p%40ss-word@db.test:5432/sales', ['p%40ss-word', 'p@ss-word']],
    ['mysql://ada:p@ss@db.test/sales', ['p@ss']],
    ['postgres://ada:pa/ss@db.test/sales', ['pa/ss']],
    ['https://:only-password@acme.test', ['only-password']],
    ['jdbc:postgresql://db.test/sales?user=ada&password=secret%20word&ssl=true', ['secret%20word', 'secret word']],
    ['redis://default:p%zz@cache.test', ['p%zz']],
    ['https://ada@acme.test/a:b@c', []],
    ['ada:word@acme.test', []],
    ['https://acme.test:8080/x?page=2&keyword=none', []],
  ])('%s has %p', (address, credentials) => expect(credentialsIn(address)).toEqual(credentials))

  test('the password and the whole are masked, and neither user, host, port nor database', () => {
    const { text } = createRedactor(['postgres://ada:p%40ss-word@db.test:5432/sales'])
    expect<unknown>(text('postgres://ada:p%40ss-word@db.test:5432/sales')).toBe('***')
    expect<unknown>(text('password "p@ss-word" of ada@db.test:5432/sales: p%40ss-word')).toBe(
      'password "***" of ada@db.test:5432/sales: ***',
    )
  })
})

test('in the log, the error and the data of a run that prints it in other forms', async () => {
  const home = folder()
  const secret = 'correct/horse+battery staple=='
  const address = 'https://ada:pass-of-the-proxy@proxy.test/shared/path-of-the-proxy'
  const settings = { secrets: { word: secret }, agents: { 'wiki@x': { base_url: address } } }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  const team = join(folder(), 'team.yml')
  const run = [
    'printf %s "$WORD" | base64 -w 8; printf %s "$WORD" | od -An -tx1; printf %s "$WORD" | od -An -tx1 -v | tr -d " \\n"; echo',
    `printf '"%s"' "$WORD" | sed 's|/|\\\\/|g'; echo; printf 'pass-of-%s' 'the-proxy'; echo`,
    'for part in 1 2 3; do printf correct/; sleep 0.1; printf "horse+battery "; sleep 0.1; echo staple==; done; exit 1',
  ].join('\n')
  const phases = [{ name: 'say', agent: 'exec', commands: [{ name: 'say', run, env: { WORD: '{{ secrets.word }}' } }] }]
  writeFileSync(team, JSON.stringify({ name: '@local/say', version: '1.0.0', phases }))
  const daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path: team })
  await daemon.ended(run_id)
  const { lines } = await daemon.call('/v1/runs/logs', { run_id })
  const shown = JSON.stringify([lines, await daemon.call('/v1/runs/get', { run_id })])
  const printed = Buffer.from(secret)
  for (const part of [
    ...printed.toString('base64').match(/.{8}/g)!,
    ...printed.toString('hex').match(/.{12}/g)!,
    ...['correct', 'battery', 'staple', 'pass-of-the-proxy'],
  ])
    expect(shown).not.toContain(part)
  expect(shown).toContain('***')
  await daemon.stop()
  const { stdout } = await command(['settings', 'list'], { home })
  expect(stdout).toContain('https://ada:***@proxy.test/shared/path-of-the-proxy')
}, 30_000)

test('in the names of files: such a file is recorded nowhere, and the log says that there was one', async () => {
  const home = folder()
  const secret = 'correct-horse-battery'
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ secrets: { word: secret } }), { mode: 0o600 })
  const run =
    'echo 1 > "$CADRE_OUT/kept"; echo 2 > "$CADRE_OUT/$WORD.txt"; mkdir "$CADRE_OUT/x-$WORD"; echo 3 > "$CADRE_OUT/x-$WORD/y"'
  const phases = [{ name: 'say', agent: 'exec', commands: [{ name: 'say', run, env: { WORD: '{{ secrets.word }}' } }] }]
  const team = files({ 'team.yml': JSON.stringify({ name: '@local/say', version: '1.0.0', phases }) })
  const daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path: team })
  expect((await daemon.ended(run_id)).state).toBe('completed')
  const { artifacts } = await daemon.call('/v1/artifacts/list', { run_id })
  expect(artifacts.map(({ name }: { name: string }) => name)).toEqual(['kept'])
  const { lines } = await daemon.call('/v1/runs/logs', { run_id })
  expect(lines.map(({ text }: { text: string }) => text).join('\n')).toContain('***.txt, x-***/y')
  await daemon.stop()
  for (const name of readdirSync(home).filter(each => each.startsWith('daemon.db')))
    expect([name, readFileSync(join(home, name)).includes(secret)]).toEqual([name, false])
})
