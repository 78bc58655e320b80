// The table of docs/operations.md has each row of `bun run bench:day`, and no other.

import { expect, test } from 'bun:test'
import { ROWS } from '../bench/day/rows.ts'
import { readDocument } from './support/fences.ts'

test('each row of a day is in the table of docs/operations.md', () => {
  const section = readDocument('docs/operations.md').split('## A day of failures')[1]!.split('\n## ')[0]!
  const named = Array.from(section.matchAll(/^\| `([\w-]+)` /gm), ([, name]) => name!)
  expect(named).toEqual(ROWS.map(({ name }) => name))
})
