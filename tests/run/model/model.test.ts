// 200 random teams on a real daemon against the reference model, over kills, cancels and resumes. The seed is printed;
// CADRE_TEST_SEED repeats it, and `bun run chaos -- --model` runs many more.

import { expect, test } from 'bun:test'
import { seedOf } from '../../support/random.ts'
import { modelStorm } from './storm.ts'

test('runs, resumes and their plans come to what the contract says, and no ticket is written twice', async () => {
  const toll = await modelStorm({ seed: seedOf('model of resumes'), from: 0, count: 200 })
  console.log(JSON.stringify(toll))
  expect(toll.teams).toBe(200)
}, 600_000)
