// A short storm for every day; `bun run chaos` is the long one.

import { expect, test } from 'bun:test'
import { chaos } from '../support/chaos.ts'
import { seedOf } from '../support/random.ts'

test('no kill breaks a rule, loses what was recorded, or writes twice', async () => {
  const toll = await chaos(seedOf('chaos'), { ms: 18_000 })
  console.log(toll)
  expect(toll.kills).toBeGreaterThan(20)
}, 90_000)
