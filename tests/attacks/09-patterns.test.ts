// Patterns and schemas that a team wrote end in a bounded time, whatever they and the values are.

import { describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { discover } from '../../lib/agent/catalogue.ts'
import type { Json } from '../../lib/json.ts'
import { valueProblems } from '../../lib/schema/foreign-judge.ts'
import { schemaProblems } from '../../lib/schema/foreign-schema.ts'
import { Refusal, Work } from '../../lib/schema/work-budget.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { readJson, whyNoSchema } from '../../lib/vendors/llm/structured.ts'
import { folder } from '../support/folder.ts'
import { hostileJson, hostileTexts } from '../support/hostile.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const random = randomFrom(seedOf('patterns'))
/** Milliseconds of processor time for one judgement. JavaScript's engine would need years for most. */
const HELD = 1_000
const spent = (since: NodeJS.CpuUsage) => {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1_000
}

/** Whether a value fits; null when that takes too many steps. */
function verdict(schema: Json, value: Json): boolean | null {
  const began = process.cpuUsage()
  try {
    return valueProblems(schema, value).length === 0
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal)
    return null
  } finally {
    expect(spent(began)).toBeLessThan(HELD)
  }
}

const EVIL: [pattern: string, text: string][] = [
  ['^(a|a)*$', `${'a'.repeat(100_000)}!`],
  ['^(a+)+$', `${'a'.repeat(100_000)}!`],
  ['(x+x+)+y', 'x'.repeat(100_000)],
  ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'.repeat(100_000)],
  ['^(\\d+|\\d+[a-z])*$', `${'1'.repeat(50_000)}!`],
  ['(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x$', 'a'.repeat(50_000)],
  ['^(?:a?){30}a{30}$', 'a'.repeat(50_000)],
  ['\\s+$', ' '.repeat(200_000)],
]

test.each(EVIL)('%s is judged in a bounded time, as a pattern and as the name of a field', (pattern, text) => {
  expect(schemaProblems({ pattern, patternProperties: { [pattern]: true } }, new Work(10_000))).toEqual([])
  verdict({ type: 'string', pattern }, text)
  verdict({ patternProperties: { [pattern]: false }, additionalProperties: false }, { [text]: 1 })
  verdict({ propertyNames: { pattern } }, { [text]: 1 })
  const schema = { type: 'object', properties: { a: { type: 'string', pattern } } }
  const began = process.cpuUsage()
  readJson(schema, JSON.stringify({ a: text }))
  expect(spent(began)).toBeLessThan(HELD)
})

test('patterns have the verdict that JavaScript’s engine has', () => {
  const rows: [pattern: string, text: string, fits: boolean][] = [
    ['^[\\w.-]+@[\\w-]+\\.[a-z]{2,}$', 'ada@example.com', true],
    ['^[\\w.-]+@[\\w-]+\\.[a-z]{2,}$', 'ada', false],
    ['^(a|a)*$', 'aaaa', true],
    ['^(a|a)*$', 'aaa!', false],
    ['b', 'abc', true],
    ['\\/', 'a/b', true],
    ['^[\\u00e0-\\u00ff]+$', 'éà', true],
    ['^\\u{1F600}.$', '😀😀', true],
    ['^(?<year>\\d{4})-(?<month>\\d\\d)$', '2026-01', true],
    ['^\\p{L}+$', 'Grüße', true],
    ['a$', 'a\n', false],
    ['^[^]$', '\n', true],
    ['^.$', '\n', false],
  ]
  for (const [pattern, text, fits] of rows) {
    expect([pattern, text, new RegExp(pattern, 'u').test(text)]).toEqual([pattern, text, fits])
    expect([pattern, text, verdict({ pattern }, text)]).toEqual([pattern, text, fits])
  }
})

describe('a team', async () => {
  const catalogue = await discover({ home: folder() })
  const agents = { get: (name: string) => catalogue.get(name), names: () => catalogue.names() }
  const team = (lines: string) => `name: "@local/x"
version: 1.0.0
phases:
  - name: ask
    agent: llm
    action: complete
    sources:
      - name: reply.json
        prompt: Hello
        schema:
          type: object
${lines.replaceAll(/^/gm, '          ')}
`
  const problems = async (lines: string) => {
    const began = process.cpuUsage()
    const found = await loadBundle(new Map([['team.yml', team(lines)]]), { agents }).then(() => [], problemsOf)
    expect(spent(began)).toBeLessThan(5_000)
    return found.map(({ file, line, column, message }) => `${file}:${line}:${column} ${message}`)
  }

  test.each([
    [
      'properties:\n  a: { type: string, pattern: "(a)\\\\1" }',
      /^team.yml:13:41 .*RE2.*invalid escape sequence: `\\1`/,
    ],
    ['properties:\n  a: { pattern: "^(?=a)b" }', /^team.yml:13:27 .*RE2.*`\(\?=`/],
    ['properties:\n  a: { pattern: "(?<x>a)\\\\k<x>" }', /^team.yml:13:27 .*RE2.*no references to groups/],
    ['properties:\n  a: { pattern: "(?<!a)b" }', /^team.yml:13:27 .*RE2/],
    ['properties:\n  a: { pattern: "a{1000}{1000}" }', /^team.yml:13:27 .*(repeats too much|RE2)/],
    ['properties:\n  a: { pattern: "(a{1000}){1000}" }', /^team.yml:13:27 .*repeats too much/],
    ['patternProperties:\n  "(?=a)": true', /^team.yml:13:22 .*RE2/],
    ['properties:\n  a:\n    items:\n      anyOf:\n        - pattern: "["', /^team.yml:16:30 .*RE2/],
    ['$defs:\n  a: { pattern: "[" }', /^team.yml:13:27 .*RE2/],
    ['properties:\n  a: { $ref: "#/$defs/b" }', /^team.yml:13:24 `\$ref` must name a part of this schema/],
    ['properties:\n  a: { $ref: "https://acme.test/schema" }', /^team.yml:13:24 `\$ref` must name/],
    ['properties:\n  a: { minLength: x }', /^team.yml:13:29 `minLength` must be a whole number from 0/],
    ['unevaluatedProperties: false', /^team.yml:12:34 `unevaluatedProperties` cannot be checked here: remove it/],
  ])('with %j is refused before it runs, at the place', async (lines, said) => {
    const found = await problems(lines)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(said)
  })

  test('with a schema that can be judged is taken, and so is one with templates', async () => {
    expect(await problems('properties:\n  a: { type: string, pattern: "^(a|a)*$", format: date }')).toEqual([])
    expect(await problems('properties:\n  a: { type: string, pattern: "{{ run.name }}(" }')).toEqual([])
    expect(await problems('$defs: { x: { $ref: "#" } }\nadditionalProperties: { $ref: "#/$defs/x" }')).toEqual([])
  })

  test('with patterns that are too large together is refused in a bounded time', async () => {
    const fields = Array.from({ length: 2_000 }, (_, n) => `  a${n}: { pattern: "(x${n}{90}){20}" }`).join('\n')
    expect((await problems(`properties:\n${fields}`)).join()).toContain('too large together')
  })
})

test('a schema of a template is judged before anything is asked', () => {
  expect(whyNoSchema({ type: 'object', properties: { a: { pattern: '(?=x)' } } })).toContain('/properties/a/pattern')
  expect(whyNoSchema({ type: 'object', $ref: '#/gone' })).toContain('`$ref` must name a part of this schema')
  expect(whyNoSchema({ type: 'object', properties: { a: { pattern: '^(a|a)*$' } } })).toBeNull()
})

test('a schema that makes endless work is refused by its budget', () => {
  const doubled = Object.fromEntries(
    Array.from({ length: 60 }, (_, n) => [
      `d${n}`,
      { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
    ]),
  )
  expect(verdict({ $defs: { ...doubled, d60: { type: 'number' } }, $ref: '#/$defs/d0' }, 1)).toBeNull()
  expect(verdict({ $ref: '#' }, 1)).toBeNull()
  expect(verdict({ anyOf: [{ $ref: '#' }] }, 1)).toBeNull()
  const items = Array.from({ length: 200_000 }, (_, n) => n)
  verdict({ uniqueItems: true }, items)
  verdict({ items: { enum: items.slice(0, 10_000) } }, items)
  verdict(
    { items: { format: 'email' } },
    items.map(() => `a@${'a-'.repeat(450)}!`),
  )
  let deep: Json = []
  for (let n = 0; n < 50_000; n++) deep = [deep]
  verdict({ items: { $ref: '#' } }, deep)
  verdict({ const: deep }, deep)
  verdict({ uniqueItems: true }, [deep, deep])
  let schema: Json = {}
  for (let n = 0; n < 50_000; n++) schema = { not: schema }
  expect(schemaProblems(schema, new Work()).length).toBe(1)
  verdict(schema, 1)
})

test('problems are collected up to twenty, and every list of a schema is paid for', () => {
  const names = Array.from({ length: 1_000 }, (_, n) => `name${n}`)
  const items = Array.from({ length: 20_000 }, () => ({ a: 1 }))
  const falses = names.map(() => false)
  const lists: Json[] = [
    { required: names },
    { dependentRequired: { a: names } },
    { dependentRequired: Object.fromEntries(names.map(name => [name, names])) },
    { dependentSchemas: Object.fromEntries(names.map(name => [name, { required: names }])) },
    { dependentSchemas: { a: { required: names } } },
    { allOf: falses },
    { type: names.map(() => 'string') },
    { enum: [names, names] },
    { const: names },
  ]
  for (const schema of lists) {
    const one = valueProblems(schema, { a: 1 })
    expect(one.length).toBeLessThanOrEqual(20)
    expect(verdict({ type: 'array', items: schema }, items)).not.toBe(one.length > 0)
    // Where nothing is collected, every item is judged, and the budget ends it.
    expect(verdict({ contains: { allOf: [schema, false] } }, items)).toBeNull()
  }
  expect(valueProblems({ items: { required: names } }, items)).toHaveLength(20)
  expect(valueProblems({ items: false }, items)).toHaveLength(20)
  expect(valueProblems({ required: names.slice(0, 3) }, {})).toHaveLength(3)
})

test('a pattern is translated once for one reply', () => {
  // As linear-regex.ts loads it: an import would be another copy.
  const { RE2JS } = require('re2js') as typeof import('re2js')
  const translated = spyOn(RE2JS, 'translateRegExp')
  try {
    const texts = Array.from({ length: 500 }, (_, n) => `a${n}`)
    expect(valueProblems({ items: { pattern: '^a' } }, texts)).toEqual([])
    expect(translated).toHaveBeenCalledTimes(1)
  } finally {
    translated.mockRestore()
  }
})

test('a reply that is nested without end is a reply that does not fit', () => {
  for (const text of [
    '['.repeat(1_000_000),
    `${'['.repeat(500_000)}${']'.repeat(500_000)}`,
    `{"a":${'{"a":'.repeat(200_000)}`,
  ]) {
    expect(readJson({ type: 'object', additionalProperties: { $ref: '#' } }, text)).toHaveProperty('problem')
  }
})

test('nothing in a schema or a value throws anything but a refusal', () => {
  for (let n = 0; n < 2_000; n++) {
    const schema = hostileJson(random) as Json
    const value = hostileJson(random) as Json
    if (schemaProblems(schema, new Work()).length === 0) verdict(schema, value)
  }
  for (const pattern of hostileTexts(random, 1_000)) {
    if (schemaProblems({ pattern }, new Work()).length === 0) verdict({ pattern }, 'victim')
  }
})

test('verdicts are those of TypeBox, for whatever both know', () => {
  // Without names such as toString: TypeBox takes them for fields that every object has.
  const names = fc.constantFrom('a', 'b', 'ab', 'c')
  const leaf = fc.constantFrom<Json>(null, true, 0, 1, 1.5, -3, 6, '', 'a', 'ab', '𝒶', '𝒶b', '2026-01-31', '10.0.0.1')
  const { value } = fc.letrec<{ value: Json }>(tie => ({
    value: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.array(fc.tuple(names, tie('value')), { maxLength: 3 }).map(fields => Object.fromEntries(fields)),
    ),
  }))
  const count = fc.integer({ min: 0, max: 3 })
  const types = fc.constantFrom('object', 'array', 'string', 'number', 'integer', 'boolean', 'null')
  const { schema } = fc.letrec<{ schema: Json }>(tie => {
    const many = fc.array(tie('schema'), { minLength: 1, maxLength: 3 })
    const named = fc.array(fc.tuple(names, tie('schema')), { maxLength: 3 }).map(all => Object.fromEntries(all))
    const keywords = {
      ...{ type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })), const: leaf },
      ...{ enum: fc.array(leaf, { minLength: 1, maxLength: 4 }), allOf: many, anyOf: many, oneOf: many },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      ...{ not: tie('schema'), if: tie('schema'), then: tie('schema'), else: tie('schema') },
      ...{ minLength: count, maxLength: count, pattern: fc.constantFrom('^a', 'b$', '^.$', '[ab]{2}') },
      ...{ format: fc.constantFrom('date', 'ipv4', 'unknown') },
      ...{ minimum: count, maximum: count, exclusiveMinimum: count, exclusiveMaximum: count },
      ...{ multipleOf: fc.constantFrom(1, 2, 0.5) },
      ...{ items: tie('schema'), prefixItems: many, minItems: count, maxItems: count, uniqueItems: fc.boolean() },
      ...{ contains: tie('schema'), minContains: count, maxContains: count },
      ...{ properties: named, required: fc.uniqueArray(names, { maxLength: 2 }), propertyNames: tie('schema') },
      ...{ additionalProperties: tie('schema'), minProperties: count, maxProperties: count },
      patternProperties: fc.constantFrom<Json>({ '^a': { type: 'string' } }, { b: { type: 'number' }, a: true }),
      dependentRequired: fc.constantFrom<Json>({ a: ['b'] }, { b: ['ab'] }),
      dependentSchemas: tie('schema').map((each): Json => ({ a: each })),
    } as Record<string, fc.Arbitrary<Json>>
    const pair = fc
      .constantFrom(...Object.keys(keywords))
      .chain(key => keywords[key]!.map(given => [key, given] as const))
    return {
      schema: fc.oneof(
        { depthSize: 'small' },
        fc.boolean(),
        fc.array(pair, { maxLength: 4 }).map((pairs): Json => Object.fromEntries(pairs)),
      ),
    }
  })
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 8, maxLength: 8 }), (schema, values) => {
      expect(schemaProblems(schema, new Work())).toEqual([])
      const theirs = Compile(schema as TSchema)
      for (const each of values) {
        const ours = valueProblems(schema, each).length === 0
        if (ours !== theirs.Check(each)) throw new Error(`${JSON.stringify(each)}: ${ours} here`)
      }
    }),
    { numRuns: 3_000, seed: random.below(2 ** 31) },
  )
}, 120_000)

test('no other expression is made of a text that is not ours', () => {
  // Of names of ours, of settings, of what a person looks for, and of schemas that stand in our files and in agents.
  const known = [
    ...['lib/daemon/cli/machine/home-status.ts', 'lib/duration.ts', 'lib/schema/fits.ts', 'lib/secrets/secret-form.ts'],
    ...[
      'lib/settings/named.ts',
      'lib/settings/on-fail.ts',
      'lib/settings/tree.ts',
      'lib/team/compile/bundle.ts',
      'lib/team/compile/value-check.ts',
    ],
    ...[
      'lib/vendors/chat/webhook.ts',
      'lib/vendors/s3/bucket-address.ts',
      'lib/agent/net/guard.ts',
      'lib/hub/core/artifact-store.ts',
    ],
    ...['lib/text/unseen.ts', 'lib/web/run/log/search.ts', 'lib/daemon/cli/machine/install-release.ts'],
    // Of the name of a secret, every character of which is escaped, and of patterns of our schemas.
    ...['lib/team/editor/ranges.ts', 'lib/team/editor/schema-fields.ts'],
    // Of the key of an item, every character of which is escaped; of words of ours, and of names of inputs that were checked.
    ...['lib/run/views/failed-items.ts', 'lib/team/compile/credentials.ts', 'lib/team/compile/lint.ts'],
  ]
  const root = join(import.meta.dir, '../..')
  const found = [...new Glob('{agents,lib}/**/*.{ts,tsx}').scanSync(root)].filter(path =>
    /\bRegExp\(/.test(readFileSync(join(root, path), 'utf8')),
  )
  expect(found.filter(path => !known.includes(path)).sort()).toEqual([])
})
