// What an agent or a vendor returns is judged in a time that grows with its size, however deep it is nested.

import { expect, test } from 'bun:test'
import { notJson } from '../../lib/json.ts'
import { shortText } from '../../lib/text/short-text.ts'

const LEAVES = 200_000

/** Lists at a depth, and the milliseconds of processor time that it takes to judge them. */
function costAt(depth: number): number {
  let value: unknown = Array.from({ length: LEAVES }, () => [])
  for (let level = 1; level < depth; level++) value = [value]
  const costs = [1, 2, 3].map(() => {
    const began = process.cpuUsage()
    expect(notJson(value, 'data')).toBeNull()
    const { user, system } = process.cpuUsage(began)
    return (user + system) / 1_000
  })
  return Math.min(...costs)
}

test('values below many others cost no more than values at the top', () => {
  expect(costAt(190)).toBeLessThan(2.5 * costAt(1) + 50)
})

test('what is in two places is a value, what contains itself is none, and the limit stays', () => {
  const shared = { a: [1] }
  expect(notJson({ x: shared, y: [shared, shared] }, 'data')).toBeNull()
  const circle: { inner: unknown[] } = { inner: [] }
  circle.inner.push({ circle })
  expect(notJson(circle, 'data')).toBe('data.inner[0].circle contains itself')
  const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
  expect(notJson(nested(200), 'data')).toBeNull()
  expect(notJson(nested(201), 'data')).toEndWith('is nested more than 200 deep')
  expect(notJson([[new Date()], { at: Number.NaN }], 'data')).toBe('data[0][0] is a Date')
  expect(notJson({ list: [1, { at: Number.NaN }] }, 'data')).toBe('data.list[1].at is NaN')
})

test('the beginning of a text has no half characters and no NUL, with which PostgreSQL refuses the whole row', () => {
  expect(shortText('a\0b, and more', 4)).toBe('ab,')
  expect(shortText('ab😀', 3)).toBe('ab\ufffd')
})
