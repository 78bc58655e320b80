// Daemons that are killed while files come: each file starts one run, and none of them half-written.

import { expect, test } from 'bun:test'
import { seedOf } from '../support/random.ts'
import { watchStorm } from '../support/watch-storm.ts'

/** The long one takes some minutes: CADRE_SLOW_TESTS=1. */
const STORM = process.env.CADRE_SLOW_TESTS
  ? { files: 3_000, kills: 10, lifeMs: 6_000 }
  : { files: 200, kills: 3, lifeMs: 3_000 }

test('files that come while the daemon is killed start one run each', async () => {
  const toll = await watchStorm({ seed: seedOf('watch storm'), ...STORM })
  console.log(`watch storm: ${JSON.stringify(toll)}`)
  expect(toll).toMatchObject({ kills: STORM.kills, files: STORM.files })
}, 900_000)
