// The cache of values from the database: what it keeps, for how long, and what it never keeps.

import { expect, test } from 'bun:test'
import { createMemo } from '../../lib/hub/memo.ts'

test('a value that is there is no promise, and is loaded once', async () => {
  const memo = createMemo(() => 1)
  let loads = 0
  const load = async () => ({ loads: ++loads })
  const first = memo.get('a', load)
  expect(first).toBeInstanceOf(Promise)
  // Whoever asks in the meantime waits for the same load.
  expect(memo.get('a', load)).toBe(first)
  const value = await first
  expect(memo.get('a', load)).toBe(value)
  expect(loads).toBe(1)
})

test('what a commit has overtaken is not kept, even if it arrives after the commit', async () => {
  let epoch = 1
  const memo = createMemo(() => epoch)
  const slow = Promise.withResolvers<{ revoked: boolean }>()
  const before = memo.get('token', () => slow.promise)
  epoch = 2
  const after = memo.get('token', async () => ({ revoked: true }))
  slow.resolve({ revoked: false })
  expect(await before).toEqual({ revoked: false })
  await after
  expect(memo.get('token', async () => ({ revoked: false }))).toEqual({ revoked: true })
  epoch = 3
  expect(memo.get('token', async () => null)).toBeInstanceOf(Promise)
})

test('a load that fails is tried again', async () => {
  const memo = createMemo(() => 1)
  const failing = memo.get('a', () => Promise.reject(new Error('no database')))
  expect(async () => await failing).toThrow('no database')
  await Bun.sleep(0)
  expect(await memo.get('a', async () => ({}))).toEqual({})
})

test('nothing is kept where commits cannot be seen', async () => {
  const memo = createMemo(() => null)
  let loads = 0
  const load = async () => ({ loads: ++loads })
  await memo.get('a', load)
  expect(await memo.get('a', load)).toEqual({ loads: 2 })
})
