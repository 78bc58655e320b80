// A short storm for every day; `bun run chaos` is the long one.

import { expect, test } from 'bun:test'
import { chaos } from '../support/chaos.ts'
import { seedOf } from '../support/random.ts'

const STORM_MS = process.env.CADRE_SLOW_TESTS ? 18_000 : 12_000

test('no kill breaks a rule, loses what was recorded, or writes twice', async () => {
  const toll = await chaos(seedOf('chaos'), { ms: STORM_MS })
  console.log(toll)
  expect(toll.kills).toBeGreaterThan(20)
}, 90_000)
