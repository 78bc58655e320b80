// The cache of values from the database: what it keeps, for how long, and what it never keeps.

import { expect, test } from 'bun:test'
import { createMemo } from '../../lib/hub/core/memo.ts'

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

test('nothing is kept where commits cannot be seen, and a load is shared only until it begins', async () => {
  const memo = createMemo(() => null)
  let loads = 0
  const slow = Promise.withResolvers<void>()
  const load = async () => {
    const mine = { loads: ++loads }
    await slow.promise
    return mine
  }
  const together = [memo.get('a', load), memo.get('a', load)]
  await new Promise(resolve => setImmediate(resolve))
  expect(loads).toBe(1)
  const later = memo.get('a', load)
  slow.resolve()
  expect(await Promise.all([...together, later])).toEqual([{ loads: 1 }, { loads: 1 }, { loads: 2 }])
  expect(await memo.get('a', load)).toEqual({ loads: 3 })
})

test('a shared load that fails fails for all who share it, and is tried again', async () => {
  const memo = createMemo(() => null)
  const fail = () => Promise.reject(new Error('no database'))
  const outcomes = await Promise.allSettled([memo.get('a', fail), memo.get('a', fail)])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await memo.get('a', async () => ({}))).toEqual({})
})
