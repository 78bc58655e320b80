// The depth of a body is judged from its text, before anything is made of it.

import { expect, test } from 'bun:test'
import type { CadreError } from '../../lib/error.ts'
import { readJson } from '../../lib/http/body.ts'

function read(text: string): Promise<unknown> {
  const headers = { 'content-length': `${Buffer.byteLength(text)}` }
  return readJson(new Request('http://127.0.0.1/', { method: 'POST', body: text }), headers, 1_000_000)
}

const refused = (text: string) => read(text).then(JSON.stringify, (error: CadreError) => error.message)

const nested = (depth: number, inside: string) => `${'['.repeat(depth)}${inside}${']'.repeat(depth)}`

test('128 levels pass, and one more does not', async () => {
  expect(await read(nested(128, '1'))).toBeArray()
  expect(await refused(nested(129, '1'))).toBe('the body is nested deeper than 128 levels')
  expect(await refused(`{"a":${'{"b":'.repeat(128)}1${'}'.repeat(129)}`)).toContain('nested deeper')
})

test('brackets in strings do not count, whatever is escaped before a quotation mark', async () => {
  for (const value of ['['.repeat(500), `"${'{'.repeat(500)}`, `\\"${'['.repeat(500)}\\\\`, '\\'.repeat(501), '']) {
    const body = { [value]: [value, { a: value }] }
    expect(await read(JSON.stringify(body))).toEqual(body)
  }
})

test('brackets after a string count, whatever it ends with', async () => {
  for (const string of ['""', '"a\\""', '"a\\\\"', '"\\\\\\""', '"\\u005c"']) {
    expect(await refused(`[${string},${nested(128, string)}]`)).toContain('nested deeper')
    expect(await refused(`[${string},${nested(127, string)}]`)).not.toContain('nested deeper')
  }
})

test('a string without an end is not JSON', async () => {
  expect(await refused(`["${'['.repeat(200)}`)).toStartWith('the body is not JSON')
  expect(await refused(`["${'['.repeat(200)}\\"`)).toStartWith('the body is not JSON')
})
