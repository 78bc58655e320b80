// A short storm for every day; `bun run chaos` is the long one.

import { expect, test } from 'bun:test'
import { chaos } from '../support/chaos.ts'
import { seedOf } from '../support/random.ts'

/** A number and not a time, so that a busy machine kills as often. */
const KILLS = process.env.CADRE_SLOW_TESTS ? 320 : 48

test('no kill breaks a rule, loses what was recorded, or writes twice', async () => {
  const toll = await chaos(seedOf('chaos'), KILLS)
  console.log(toll)
  expect(toll.kills).toBeGreaterThanOrEqual(KILLS)
}, 90_000)
