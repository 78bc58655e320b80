// `fits` may be unsure, but never wrong: TypeBox accepts whatever it accepts.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import exec from '../agents/exec.ts'
import { fits } from '../lib/schema/fits.ts'
import { Type } from '../lib/schema/type.ts'

/** Few names and values, so that schemas and values often meet. */
const name = fc.constantFrom('a', 'b', 'ab', 'toString', '__proto__')
const leaf = fc.constantFrom<unknown>(null, true, 0, 1, 1.5, -3, Number.NaN, '', 'a', 'ab', '𝒶', '𝒶b', 'a\n', undefined)
const { value } = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map(Object.fromEntries),
  ),
}))
const size = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined })
const kept = (fields: object) => Object.fromEntries(Object.entries(fields).filter(([, each]) => each !== undefined))
const { schema } = fc.letrec<{ schema: TSchema }>(tie => ({
  schema: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<TSchema>(Type.Unknown(), Type.Null(), Type.Boolean(), { type: ['string', 'null'] }, { not: {} }),
    fc.constantFrom(0, 1, 'a', 'ab', true).map(each => Type.Literal(each)),
    fc.record({ minimum: size, maximum: size, multipleOf: size }).map(limits => Type.Number(kept(limits))),
    fc.record({ minimum: size, exclusiveMaximum: size }).map(limits => Type.Integer(kept(limits))),
    fc
      .record({ minLength: size, maxLength: size, pattern: fc.constantFrom(undefined, '^a', 'b$', '^.$') })
      .map(limits => Type.String(kept(limits))),
    fc
      .tuple(
        tie('schema'),
        fc.record({ minItems: size, maxItems: size, uniqueItems: fc.constantFrom(undefined, true) }),
      )
      .map(([items, limits]) => Type.Array(items, kept(limits))),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map(branches => Type.Union(branches)),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((oneOf): TSchema => ({ oneOf })),
    tie('schema').map(each => Type.Record(Type.String({ pattern: '^a' }), each, { additionalProperties: false })),
    fc
      .tuple(
        fc.array(fc.tuple(name, tie('schema'), fc.boolean()), { maxLength: 3 }),
        fc.oneof(fc.constantFrom(undefined, true, false), tie('schema')),
      )
      .map(([fields, additionalProperties]) =>
        Type.Object(
          Object.fromEntries(fields.map(([key, each, optional]) => [key, optional ? Type.Optional(each) : each])),
          kept({ additionalProperties }),
        ),
      ),
  ),
}))

test('TypeBox accepts whatever fits', () => {
  let fitting = 0
  const property = fc.property(schema, fc.array(value, { minLength: 10, maxLength: 10 }), (schema, values) => {
    const validator = Compile(schema)
    for (const each of values) {
      if (!fits(schema, each)) continue
      fitting++
      expect([each, validator.Check(each)]).toEqual([each, true])
    }
  })
  fc.assert(property, { numRuns: 3_000 })
  expect(fitting).toBeGreaterThan(300)
})

describe('knows what a small run checks', () => {
  test('the entry of exec', () => {
    const { entry } = exec.phase!
    const commands = [{ name: 'say', run: 'echo', env: { A: 'b', C: 1 }, timeout: '5s', effect: 'once' }]
    expect(fits(entry, { commands, env: {} })).toBe(true)
    expect(fits(entry, { commands: [] })).toBe(false)
    expect(fits(entry, { commands: [{ name: 'say', run: 'echo', shell: 'zsh' }] })).toBe(false)
  })

  test('settings that are not needed', () => {
    expect(fits(Type.Object({}), {})).toBe(true)
    expect(fits(Type.Object({}), null)).toBe(false)
  })
})

test('a keyword that it does not know is left to TypeBox', () => {
  expect(fits({ type: 'string', format: 'email' } as TSchema, 'ada@example.com')).toBe(false)
  expect(fits({ $ref: '#/x' } as TSchema, 1)).toBe(false)
})
