// A short storm of runs whose replies get lost. The long one is `bun run chaos -- --doubt`.

import { expect, test } from 'bun:test'
import { doubtStorm } from '../support/doubt-storm.ts'
import { seedOf } from '../support/random.ts'

test('nothing exists twice without its run saying so, and nothing is missing in a run that completed', async () => {
  const { runs, doubts, took } = await doubtStorm(seedOf('doubt'), 60)
  expect([runs, doubts > 0, took.length > 0]).toEqual([60, true, true])
}, 120_000)
