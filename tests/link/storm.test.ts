// A short storm between two hubs and three daemons (support/link-storm/storm.ts).

import { expect, test } from 'bun:test'
import { linkStorm } from '../support/link-storm/storm.ts'
import { seedOf } from '../support/random.ts'

const server = process.env.TEST_POSTGRES_URL
/** After the storm everything has to settle, and is compared twice. */
const STORM_MS = process.env.CADRE_SLOW_TESTS ? 25_000 : 8_000

test.skipIf(!server)(
  'each run executes on one daemon, and the hubs know all of it, whatever is killed or cut (skipped without TEST_POSTGRES_URL)',
  async () => {
    const { runs, kills, losses } = await linkStorm(server!, seedOf('link storm'), { ms: STORM_MS, least: 6 })
    expect(Math.min(runs, kills, losses)).toBeGreaterThan(5)
  },
  300_000,
)
