// What the wire makes of values that another program wrote: what is left out, what is shortened, and what is refused.

import { expect, test } from 'bun:test'
import { matches } from '../lib/schema/schema.ts'
import { briefError } from '../lib/wire/budget.ts'
import { offerOf, Requires } from '../lib/wire/needs.ts'
import { bounded } from '../lib/wire/why/explain.ts'

test('a team asks for labels and agents only by names that a daemon can have', () => {
  expect(matches(Requires, { labels: { gpu: true, region: 'eu' }, agents: { exec: '^1.0' } })).toBe(true)
  expect(matches(Requires, { labels: { 'g p u': true } })).toBe(false)
  expect(matches(Requires, { agents: { 'Exec!': '^1.0' } })).toBe(false)
  expect(matches(Requires, { lables: ['gpu'] })).toBe(false)
})

test('a label whose name or value no team could ask for is not offered, and the others are', () => {
  const labels = { gpu: 'yes', 'g p u': 'yes', region: 'e\nu', n: 7 }
  expect(offerOf({ labels })).toEqual({ labels: { gpu: 'yes' } })
})

test('an explanation with a long line keeps what the line begins with', () => {
  const run_id = crypto.randomUUID()
  const found = { run_id, lines: ['short', 'x'.repeat(300_000)], next: [], chain: [], written: [], cancelled: [] }
  const { lines } = bounded(found, 100_000)
  expect(lines[0]).toBe('short')
  expect(lines[1]).toMatch(/^x{500,}…$/)
})

test('a long error keeps the names that lead to where it began, unless they are long, too', () => {
  const message = 'y'.repeat(100_000)
  expect(briefError({ code: 'timeout', phase: 'p', message })).toMatchObject({ code: 'timeout', phase: 'p' })
  expect(briefError({ code: 'timeout', phase: 'p'.repeat(1_000), message })).not.toHaveProperty('phase')
})
