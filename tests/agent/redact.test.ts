import { describe, expect, test } from 'bun:test'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { variantsOf } from '../support/variants.ts'

const PEM = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
`
const SECRETS = ['hunter2hunter2', 'pa"ss\\wörd/+ %&', PEM, 'a@b.test:tok-9f8e7d6c5b4a']
const CONTEXT: [string, string][] = [
  ['', ''],
  ['before ', ' after'],
  ['h', 'hunter'],
  ['ü', 'ü'],
]

/** A generator with a seed, so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function streamed(chunks: Uint8Array[]): string {
  const stream = createRedactor(SECRETS).stream()
  return Buffer.concat([...chunks.map(chunk => Buffer.from(stream.push(chunk))), Buffer.from(stream.end())]).toString()
}

describe('variants', () => {
  test('every variant of every secret is masked, in text and at every split of a stream', () => {
    const { text } = createRedactor(SECRETS)
    for (const secret of SECRETS) {
      for (const variant of variantsOf(secret)) {
        for (const [before, after] of CONTEXT) {
          const whole = text(before + variant + after)
          expect(whole).not.toContain(variant)
          const bytes = Buffer.from(before + variant + after)
          const step = bytes.length > 200 ? 7 : 1
          for (let at = 0; at <= bytes.length; at += step) {
            expect(streamed([bytes.subarray(0, at), bytes.subarray(at)])).toBe(whole)
          }
          expect(streamed([...bytes].map(byte => Uint8Array.of(byte)))).toBe(whole)
        }
      }
    }
  })

  test('base64 of a longer text with the secret anywhere in it', () => {
    const secret = 'tok-9f8e7d6c5b4a'
    const { text } = createRedactor([secret])
    for (let offset = 0; offset < 9; offset++) {
      for (const encoding of ['base64', 'base64url'] as const) {
        const encoded = Buffer.from(`${'u'.repeat(offset)}${secret}:tail`).toString(encoding)
        const masked = text(`Authorization: Basic ${encoded}`)
        expect(masked).toContain('***')
        expect(Buffer.from(masked.split(' ').at(-1)!.replaceAll('***', ''), encoding).toString()).not.toContain(
          '9f8e7d6c',
        )
      }
    }
  })

  test('in JSON, JSON in JSON, a URL and a form', () => {
    const secret = SECRETS[1]!
    const { text } = createRedactor([secret])
    const nested = JSON.stringify({ inner: JSON.stringify({ secret }) })
    const form = new URLSearchParams({ secret }).toString()
    for (const encoded of [nested, form, encodeURIComponent(secret), encodeURIComponent(secret).toLowerCase()]) {
      expect(text(encoded)).toContain('***')
      expect(text(encoded)).not.toMatch(/ss.*rd/)
    }
  })

  test('each line of a key, but not its armour', () => {
    const { text } = createRedactor([PEM])
    const [begin, line] = PEM.split('\n')
    expect<unknown>(text(`1: ${begin}\n2: ${line}`)).toBe(`1: ${begin}\n2: ***`)
  })
})

test('of a secret URL the path is masked alone, unless it is too short to hold a secret', () => {
  const webhook = createRedactor(['https://hooks.acme.test/services/T0/B1/canary', 'https://acme.test/wiki'])
  expect<unknown>(webhook.text('POST /services/T0/B1/canary failed; see /wiki')).toBe('POST *** failed; see /wiki')
  const long = createRedactor(['https://hooks.acme.test/services/T0/canary5f8a2b1c9d'])
  expect<unknown>(long.text('no such service: canary5f8a2b1c9d')).toBe('no such service: ***')
})

test('random streams equal the whole text, whatever the chunks', () => {
  for (let seed = 1; seed <= 150; seed++) {
    const next = random(seed)
    const pieces = Array.from({ length: 12 }, () => {
      const variants = [...variantsOf(SECRETS[Math.floor(next() * SECRETS.length)]!)]
      const variant = variants[Math.floor(next() * variants.length)]!
      return next() < 0.4
        ? variant.slice(0, Math.floor(next() * variant.length))
        : next() < 0.6
          ? variant
          : 'log line\n'
    })
    const bytes = Buffer.from(pieces.join(''))
    const chunks: Uint8Array[] = []
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + Math.floor(next() * 40)
      chunks.push(bytes.subarray(at, at + size))
      at += size
    }
    const whole = createRedactor(SECRETS).text(bytes.toString())
    if (streamed(chunks) !== whole) throw new Error(`seed ${seed} differs`)
    for (const secret of SECRETS) expect(whole).not.toContain(secret.trim())
  }
})

test('secrets that overlap are masked as one', () => {
  const { text } = createRedactor(['abcdef123', '123xyz789'])
  expect<unknown>(text('<abcdef123xyz789>')).toBe('<***>')
})

test('a stream gives out at once what cannot be the beginning of a secret', () => {
  const stream = createRedactor(['hunter2hunter2']).stream()
  expect(Buffer.from(stream.push(Buffer.from('line one\n'))).toString()).toBe('line one\n')
  expect(Buffer.from(stream.push(Buffer.from('password hunt'))).toString()).toBe('password ')
  expect(Buffer.from(stream.push(Buffer.from('ed'))).toString()).toBe('hunted')
})

describe('json', () => {
  const { json } = createRedactor(['s3cret-value', '12345678'])

  test('masks strings, keys and numbers at any depth, and keeps the shape', () => {
    expect<unknown>(
      json({ a: ['x s3cret-value'], 's3cret-value': 1, n: 12_345_678, m: 5, nothing: null, yes: true }),
    ).toEqual({
      a: ['x ***'],
      '***': 1,
      n: '***',
      m: 5,
      nothing: null,
      yes: true,
    })
  })

  test('gives back the value itself where nothing had to be masked', () => {
    const value = { a: [{ b: 'plain' }] }
    expect<unknown>(json(value)).toBe(value)
    expect<unknown>(createRedactor().json(value)).toBe(value)
  })
})

test('short values are not masked, but named; empty ones are nothing', () => {
  const { text, warnings } = createRedactor([
    { name: 'agents.wiki.email', value: 'a@b.c' },
    { name: 'empty', value: '' },
  ])
  expect<unknown>(text('a@b.c')).toBe('a@b.c')
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain('agents.wiki.email')
  expect(warnings[0]).not.toContain('a@b.c')
})

test('a secret that is added later is masked from then on, in open streams too', () => {
  const redactor = createRedactor()
  const stream = redactor.stream()
  expect(Buffer.from(stream.push(Buffer.from('late-secret '))).toString()).toBe('late-secret ')
  redactor.add('late-secret')
  expect<unknown>(redactor.text('late-secret')).toBe('***')
  expect(Buffer.from(stream.push(Buffer.from('late-secret '))).toString()).toBe('*** ')
})

test('ten megabytes with fifty secrets', () => {
  const redactor = createRedactor(Array.from({ length: 50 }, (_, n) => `secret-number-${n}-${n * 7919}`))
  const text = '2026-01-01T00:00:00Z info phase fetch completed in 230ms with 200 OK\n'.repeat(150_000)
  expect<unknown>(redactor.text(text)).toBe(text)
})
