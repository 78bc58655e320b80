// What is said of values that do not have the form of their schema.

import { describe, expect, test } from 'bun:test'
import { Type } from 'typebox'
import { problems, standard } from '../../lib/schema/schema.ts'
import { Permissions } from '../../lib/wire/grants.ts'
import { OrgId } from '../../lib/wire/parts.ts'

describe('a value that fits no branch of a union', () => {
  const said = (schema: Parameters<typeof problems>[0], value: unknown) =>
    problems(Type.Object({ 'a/b': schema }), { 'a/b': value }).map(({ path, message }) => `${path} ${message}`)

  test.each([0, 1.5, '01', 'acme', true, null, {}, [[]]])('is told what would: %j as org_id', value => {
    expect(said(OrgId, value)).toEqual(['/a~1b must be an integer or its decimal string'])
  })
  test('in the words of its branches', () => {
    expect(said(Type.Union([Type.String(), Type.Null()]), 1)).toEqual(['/a~1b must be a string or null'])
    expect(said(Type.Union([Type.Boolean(), Type.Literal(3), Type.Object({})]), 'x')).toEqual([
      '/a~1b must be true or false, 3 or an object',
    ])
    expect(said(Type.Array(Type.Union([Type.Number(), Type.Literal('*')])), [1, '+', '*', null])).toEqual([
      '/a~1b/1 must be a number or "*"',
      '/a~1b/3 must be a number or "*"',
    ])
  })
  test('or which bound it exceeds of the one branch that it has the form of', () => {
    const name = Type.Union([Type.String({ minLength: 1, maxLength: 3 }), Type.Null()])
    expect(said(name, '')).toEqual(['/a~1b must not be empty'])
    expect(said(name, 'abcd')).toEqual(['/a~1b must have at most 3 characters'])
    expect(said(name, 7)).toEqual(['/a~1b must be a string or null'])
  })
  test('or what is wrong inside of the one branch that it has the form of', () => {
    expect(problems(Permissions, { domains: { orgs: [1, 0], realms: '+' }, access: {} })).toEqual([
      { path: '/domains/orgs/1', message: 'must be at least 1' },
      { path: '/domains/realms', message: 'must be a list or "*"' },
    ])
  })
})

test('what a value must be is said without the words of JSON Schema', () => {
  const rules = Type.Object({
    text: Type.String({ minLength: 1, maxLength: 3 }),
    port: Type.Integer({ minimum: 1, exclusiveMaximum: 9 }),
    list: Type.Array(Type.String(), { minItems: 1, maxItems: 2, uniqueItems: true }),
    id: Type.String({ pattern: '^[0-9]+$', 'x-expected': 'the number of a page' }),
    form: Type.String({ pattern: '^[0-9]+$' }),
    either: Type.Union([Type.String({ pattern: '^x', 'x-expected': 'a text with x' }), Type.Null()]),
    one: Type.Enum(['a', 'b']),
  })
  const good = { text: 'a', port: 1, list: ['a'], id: '1', form: '1', either: null, one: 'a' }
  const said = (wrong: object) =>
    problems(rules, { ...good, ...wrong }).map(({ path, message }) => `${path} ${message}`)
  expect(said({ text: '', port: 'x', list: [], id: 'x', form: 'x', either: 'y', one: 'c' })).toEqual([
    '/text must not be empty',
    '/port must be an integer',
    '/list must not be empty',
    '/id must be the number of a page',
    '/form has a form that is not accepted',
    '/either must be a text with x or null',
    '/one must be one of a, b',
  ])
  expect(said({ text: 'abcd', port: 9, list: ['a', 'b', 'c'], id: 7 })).toEqual([
    '/text must have at most 3 characters',
    '/port must be less than 9',
    '/list must have at most 2 items',
    '/id must be the number of a page',
  ])
  expect(said({ port: 0, list: ['a', 'a'] })).toEqual([
    '/port must be at least 1',
    '/list must not have the same item twice',
  ])
})

test('a schema of the wire serves several apps and is not changed by them', () => {
  const schema = Object.freeze(Type.Object({ name: Type.String() }))
  for (const made of [standard(schema), standard(schema)]) {
    expect(made['~standard'].validate({ name: 'ada' })).toEqual({ value: { name: 'ada' } })
    expect(made['~standard'].validate({ name: 1 })).toHaveProperty('issues')
    expect(JSON.stringify(made)).toBe(JSON.stringify(schema))
    expect(Type.IsObject(made)).toBe(true)
  }
})
