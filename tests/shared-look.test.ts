// Looks that are shared by all who ask in the same turn of the event loop.

import { expect, test } from 'bun:test'
import { sharedLook } from '../lib/shared-look.ts'

test('all who ask in one turn share a look, and each key has its own', async () => {
  const looks: string[] = []
  const look = sharedLook((key: string) => {
    looks.push(key)
    return `${key}${looks.length}`
  })
  expect(await Promise.all(['a', 'b', 'a', 'a'].map(look))).toEqual(['a1', 'b2', 'a1', 'a1'])
  expect(await look('a')).toBe('a3')
})

test('looks begin a pause apart, and all who ask meanwhile share the next one', async () => {
  let looks = 0
  const look = sharedLook((_: null) => ++looks, 200)
  expect(await look(null)).toBe(1)
  const asked = []
  for (let turn = 0; turn < 10; turn++) {
    asked.push(look(null))
    await new Promise(resolve => setImmediate(resolve))
  }
  expect(new Set(await Promise.all(asked))).toEqual(new Set([2]))
})

test('no answer is older than its question', async () => {
  let there = 'before'
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const look = sharedLook(async (_: null) => {
    const seen = there
    await held
    return seen
  })
  const first = look(null)
  await Bun.sleep(1)
  there = 'after'
  const second = look(null)
  release()
  expect(await Promise.all([first, second])).toEqual(['before', 'after'])
})

test('a look that fails fails for those who shared it, and not for who asks next', async () => {
  let fails = true
  const look = sharedLook((_: null) => {
    if (fails) throw new Error('not there')
    return 'there'
  })
  const asked = await Promise.allSettled([look(null), look(null)])
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  fails = false
  expect(await look(null)).toBe('there')
})
