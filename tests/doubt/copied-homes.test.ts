// A few random rounds with copied homes; `bun run copied-homes` plays many.

import { expect, test } from 'bun:test'
import { copiedHomes } from '../support/copied-homes.ts'
import { seedOf } from '../support/random.ts'

test('nothing is written twice by a home and its copy', async () => {
  const rounds = process.env.CADRE_SLOW_TESTS ? 30 : 2
  expect((await copiedHomes(seedOf('copied-homes'), rounds, () => {})).rounds).toBe(rounds)
}, 300_000)
