// What the fields of a hook may be: each wrong combination is named where it stands and says what to write; what is right
// has its defaults and says what it means.

import { describe, expect, test } from 'bun:test'
import { occasionRule } from '../../lib/team/team.ts'
import { HOOK_SCHEMES } from '../../lib/triggers/hook/schemes.ts'
import { checkSecret } from '../../lib/triggers/hook/secrets.ts'
import { checkHook } from '../../lib/triggers/hook/spec.ts'
import { KEYS, SENDERS, specOf } from './hook-senders.ts'

const check = (fields: unknown) => checkHook(fields, occasionRule)
const HMAC = { scheme: 'hmac', header: 'X-Sig', dedup: 'body' }
const BEARER = { scheme: 'bearer' }

test('a hook has the defaults of its scheme', () => {
  expect(specOf({ scheme: 'github' })).toMatchObject({
    toleranceMs: 300_000,
    dedup: null,
    maxBytes: 1_048_576,
    keepDays: 30,
    keepBodyDays: 7,
    reply: 'json',
  })
  expect(specOf({ scheme: 'slack' }).reply).toBe('empty')
  expect(specOf({ scheme: 'slack', reply: 'json' }).reply).toBe('json')
  expect(specOf(HMAC).how.check).toMatchObject({ algorithm: 'sha256', encoding: 'hex', prefix: '', parts: ['body'] })
})

test('all limits can be said', () => {
  const given = {
    scheme: 'stripe',
    tolerance: '15m',
    max_bytes: 26_214_400,
    keep_days: 3,
    keep_body: 0,
    reply: 'empty',
  }
  expect(specOf(given)).toMatchObject({
    toleranceMs: 900_000,
    maxBytes: 26_214_400,
    keepDays: 3,
    keepBodyDays: 0,
    reply: 'empty',
  })
})

const WRONG: [fields: Record<string, unknown>, path: string, message: RegExp][] = [
  [{}, '/scheme', /is required/],
  [{ scheme: 'none' }, '/scheme', /must be one of github, .*bearer/],
  [{ scheme: 'github', secret: 'x' }, '/secret', /unknown property/],
  [{ scheme: 'github', header: 'X-Sig' }, '/header', /belongs to hmac and bearer: leave it out with github/],
  [{ scheme: 'github', algorithm: 'sha512' }, '/algorithm', /belongs to hmac: leave it out with github/],
  [{ scheme: 'github', encoding: 'hex' }, '/encoding', /hmac/],
  [{ scheme: 'github', prefix: 'sha256=' }, '/prefix', /hmac/],
  [{ scheme: 'github', payload: '{body}' }, '/payload', /hmac/],
  [{ scheme: 'github', key: 'hex' }, '/key', /hmac/],
  [{ scheme: 'slack', timestamp_header: 'X-T' }, '/timestamp_header', /hmac/],
  [{ scheme: 'slack', unit: 's' }, '/unit', /hmac/],
  [{ scheme: 'standard', id_header: 'X-Id' }, '/id_header', /hmac and bearer/],
  [{ scheme: 'bearer', algorithm: 'sha256' }, '/algorithm', /hmac/],
  [{ scheme: 'github', tolerance: '1m' }, '/tolerance', /signed time, and there is none: leave it out with github/],
  [{ ...HMAC, tolerance: '1m' }, '/tolerance', /name `timestamp_header`/],
  [{ scheme: 'slack', tolerance: '29s' }, '/tolerance', /from 30s to 15m/],
  [{ scheme: 'slack', tolerance: '16m' }, '/tolerance', /from 30s to 15m/],
  [{ scheme: 'slack', tolerance: '300' }, '/tolerance', /must be a duration/],
  [{ scheme: 'slack', tolerance: 300 }, '/tolerance', /must be a string/],
  [{ scheme: 'hmac', dedup: 'body' }, '/header', /is required: name the header of the signature/],
  [{ ...HMAC, header: 'X Sig' }, '/header', /the name of a header/],
  [{ ...HMAC, header: 'X-Sig\n' }, '/header', /the name of a header/],
  [{ ...HMAC, algorithm: 'sha1' }, '/algorithm', /sha256, sha512/],
  [{ ...HMAC, encoding: 'base64url' }, '/encoding', /hex, base64/],
  [{ ...HMAC, prefix: ' v=' }, '/prefix', /before the digest/],
  [{ ...HMAC, prefix: 'a, b' }, '/prefix', /comma before a blank/],
  [{ ...HMAC, payload: '' }, '/payload', /must contain \{body\}/],
  [{ ...HMAC, payload: '{timestamp}', timestamp_header: 'X-T' }, '/payload', /must contain \{body\}/],
  [{ ...HMAC, payload: '{body}{body}' }, '/payload', /has \{body\} twice/],
  [{ ...HMAC, payload: '{Body}' }, '/payload', /has \{Body\}: there are \{timestamp\}, \{id\} and \{body\}/],
  [{ ...HMAC, payload: '{body}}' }, '/payload', /there are/],
  [{ ...HMAC, payload: '{timestamp}.{body}' }, '/timestamp_header', /is required, because `payload` has \{timestamp\}/],
  [{ ...HMAC, timestamp_header: 'X-T' }, '/payload', /must say where the time stands, such as \{timestamp\}\.\{body\}/],
  [{ ...HMAC, payload: '{id}.{body}' }, '/id_header', /is required, because `payload` has \{id\}/],
  [{ ...HMAC, payload: '{id}{body}', id_header: 'X-Id' }, '/payload', /between \{id\} and what stands beside it/],
  [{ ...HMAC, payload: '{body}{id}', id_header: 'X-Id' }, '/payload', /between \{id\}/],
  [{ ...HMAC, unit: 'ms' }, '/unit', /`timestamp_header`/],
  [{ ...HMAC, payload: '{timestamp}{body}', timestamp_header: 'x-sig' }, '/timestamp_header', /another header/],
  [{ scheme: 'hmac', header: 'X-Sig', id_header: 'x-sig' }, '/id_header', /another header/],
  [
    { scheme: 'hmac', header: 'X-Sig', payload: '{timestamp}{body}', timestamp_header: 'X-T', id_header: 'X-T' },
    '/id_header',
    /another header than that of the time/,
  ],
  [
    { scheme: 'hmac', header: 'X-Sig' },
    '/dedup',
    /is required, because a delivery of hmac has no id \(or name `id_header`\)/,
  ],
  [{ scheme: 'hmac', header: 'X-Sig', id_header: 'X-Id', dedup: 'body' }, '/dedup', /write one of them/],
  [{ ...BEARER, id_header: 'X-Id', dedup: '{{ body.id }}' }, '/dedup', /write one of them/],
  [{ ...BEARER, header: 'Idempotency-Key' }, '/id_header', /another header/],
  [
    { scheme: 'graph' },
    '/dedup',
    /is required, because a delivery of graph has no id: write `none`, `body`, or a template/,
  ],
  [{ scheme: 'graph', dedup: '' }, '/dedup', /must not be empty/],
  [{ scheme: 'graph', dedup: 'id' }, '/dedup', /must be `none`, `body`, or a template such as \{\{ body\.id \}\}/],
  [{ scheme: 'graph', dedup: '{{ bdy.id }}' }, '/dedup', /unknown name `bdy` \(did you mean `body`\?\)/],
  [{ scheme: 'graph', dedup: '{{ delivery.id }}' }, '/dedup', /unknown name `delivery`/],
  [{ scheme: 'graph', dedup: '{{ inputs.id }}' }, '/dedup', /unknown name `inputs`/],
  [{ scheme: 'graph', dedup: '{{ body.id' }, '/dedup', /is not closed/],
  [{ scheme: 'github', max_bytes: 26_214_401 }, '/max_bytes', /at most 26214400/],
  [{ scheme: 'github', max_bytes: 0 }, '/max_bytes', /at least 1/],
  [{ scheme: 'github', keep_days: 2 }, '/keep_days', /at least 3/],
  [{ scheme: 'github', keep_body: -1 }, '/keep_body', /at least 0/],
  [{ scheme: 'github', reply: 'text' }, '/reply', /json, empty/],
  [{ scheme: 'github', other: 1 }, '/other', /unknown property/],
]

test.each(WRONG)('%j is refused', (fields, path, message) => {
  const { spec, problems } = check(fields)
  expect(spec).toBe(null)
  expect(problems.map(problem => problem.path)).toEqual([path])
  expect(problems[0]!.message).toMatch(message)
})

test('every problem is named at once', () => {
  const { problems } = check({ scheme: 'graph', header: 'X-A', unit: 's', tolerance: '1m' })
  expect(problems.map(({ path }) => path)).toEqual(['/header', '/unit', '/tolerance', '/dedup'])
})

test('what is no hook at all is refused, and nothing throws', () => {
  for (const given of [
    null,
    1,
    'github',
    [],
    [{ scheme: 'github' }],
    { scheme: ['github'] },
    { scheme: '__proto__' },
  ]) {
    const { spec, problems } = check(given)
    expect([given, spec, problems.length > 0]).toEqual([given, null, true])
  }
})

test('a fault of the compiler is not taken for one of the hook', () => {
  const broken = () => {
    throw new TypeError('broken')
  }
  expect(() => checkHook({ scheme: 'graph', dedup: '{{ body.id }}' }, broken)).toThrow('broken')
})

describe('notes', () => {
  const notes = (fields: Record<string, unknown>) => check(fields).notes.join('\n')

  test('a scheme without a signed time says for how long a recorded request is recognised', () => {
    for (const { fields, name } of SENDERS) {
      const { how, dedup } = specOf(fields)
      const says = /signs no time/.test(notes(fields))
      expect([name, says]).toEqual([name, !how.isTimed])
      if (!how.isTimed && dedup === null) expect(notes(fields)).toContain('30 days')
    }
    expect(notes({ scheme: 'github', keep_days: 9 })).toContain('by its id for 9 days, and the id is not signed either')
    expect(notes({ ...BEARER, dedup: 'body' })).toContain('the same body for 10 minutes')
  })

  test('a scheme that sends its secret says so, and one that recognises nothing', () => {
    for (const fields of [{ scheme: 'gitlab_token' }, BEARER, { scheme: 'graph', dedup: 'body' }]) {
      expect(notes(fields)).toContain('sends the secret itself')
    }
    expect(notes({ scheme: 'gitlab_token' })).toContain('gitlab is the scheme that signs')
    expect(notes({ scheme: 'graph', dedup: 'none' })).toContain('each repetition starts a run')
    expect(notes({ scheme: 'standard', dedup: 'none' })).toContain('each repetition of the sender starts a run')
    expect(notes({ scheme: 'jira' })).toContain('administrator')
    expect(notes({ scheme: 'standard' })).toBe('')
  })
})

describe('secrets', () => {
  const of = (fields: Record<string, unknown>, secret: string) => checkSecret(specOf(fields), secret)
  const base64 = (bytes: number) => Buffer.alloc(bytes, 255).toString('base64')
  const whpk = `whpk_${Buffer.from(KEYS.publicKey.export({ format: 'jwk' }).x!, 'base64url').toString('base64')}`

  test('what each sender has is accepted', () => {
    for (const { fields, secret, other } of SENDERS) {
      for (const each of [secret, other]) expect(of(fields, each)).toEqual({ problems: [], notes: [] })
    }
    expect(of({ scheme: 'standard' }, whpk).problems).toEqual([])
    expect(of({ ...HMAC, key: 'hex' }, 'AB'.repeat(16)).problems).toEqual([])
  })

  test('every scheme needs one, in one line', () => {
    for (const scheme of HOOK_SCHEMES) {
      const lock = { scheme, key: 'text' } as const
      for (const bad of ['', 'a\nb', ' a', 'a ', 'a\0', '\ud800'.repeat(30), 'x'.repeat(1_001)]) {
        expect([scheme, bad, checkSecret(lock, bad).problems.length]).toEqual([scheme, bad, 1])
      }
    }
    expect(checkSecret({ scheme: 'github', key: 'text' }, '', '/add_secret').problems[0]!.path).toBe('/add_secret')
    expect(checkSecret({ scheme: 'github', key: 'text' }, '').problems[0]!.path).toBe('/secret')
  })

  const BAD: [fields: Record<string, unknown>, secret: string, message: RegExp][] = [
    [BEARER, 'x'.repeat(23), /at least 24 characters/],
    [BEARER, 'a b'.repeat(10), /ASCII without blanks/],
    [BEARER, 'ä'.repeat(24), /ASCII/],
    [{ scheme: 'gitlab_token' }, 'one, two', /comma before a blank/],
    [{ scheme: 'gitlab_token' }, 'schlüssel', /ASCII/],
    [{ scheme: 'graph', dedup: 'none' }, 'x'.repeat(129), /at most 128 characters/],
    [{ scheme: 'gitlab' }, 'a plain secret', /whsec_.*gitlab_token/],
    [{ scheme: 'gitlab' }, `whsec_${base64(24)}`, /signing token/],
    [{ scheme: 'gitlab' }, whpk, /signing token/],
    [{ scheme: 'standard' }, base64(32), /must be whsec_ and the base64 of 24 to 64 bytes/],
    [{ scheme: 'standard' }, `v1,whsec_${base64(32)}`, /must be whsec_/],
    [{ scheme: 'standard' }, `whsec_${base64(23)}`, /24 to 64 bytes/],
    [{ scheme: 'standard' }, `whsec_${base64(65)}`, /24 to 64 bytes/],
    [{ scheme: 'standard' }, `whsec_${base64(32).slice(0, -1)}`, /base64/],
    [{ scheme: 'standard' }, `whsec_${base64(32).replaceAll('/', '_')}`, /base64/],
    [{ scheme: 'standard' }, `whsec_${base64(32).replace('8=', '9=')}`, /base64/],
    [{ scheme: 'standard' }, `whsec_ ${base64(32)}`, /base64/],
    [{ scheme: 'standard' }, 'whsec_=', /base64/],
    [{ scheme: 'standard' }, `whsk_${base64(64)}`, /take the public one, which begins with whpk_/],
    [{ scheme: 'standard' }, `whpk_${base64(31)}`, /32 bytes of a public key/],
    [{ scheme: 'standard' }, whpk.slice(0, -1), /32 bytes of a public key/],
    [{ ...HMAC, key: 'hex' }, 'abc', /must be hex, because `key` is hex/],
    [{ ...HMAC, key: 'hex' }, `${'ab'.repeat(16)}zz`, /must be hex/],
    [{ ...HMAC, key: 'base64' }, 'YQ', /must be base64 with its padding/],
    [{ ...HMAC, key: 'base64' }, 'YR==', /must be base64/],
  ]

  test.each(BAD)('%j: %p is refused', (fields, secret, message) => {
    const { problems } = of(fields, secret)
    expect(problems.map(({ path }) => path)).toEqual(['/secret'])
    expect(problems[0]!.message).toMatch(message)
    expect(problems[0]!.message).not.toContain(secret)
  })

  test('a short one is accepted with a note', () => {
    expect(of({ scheme: 'github' }, 'abc').notes).toEqual([expect.stringContaining('only 3 characters')])
    expect(of({ scheme: 'github' }, 'x'.repeat(16)).notes).toEqual([])
  })
})
