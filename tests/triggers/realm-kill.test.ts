// Two hubs whose clocks are 80 s apart, on a PostgreSQL whose clock the test moves from minute to minute, and that are
// killed: each slot of a realm's schedules has one firing, and each start one run.

import { expect, test } from 'bun:test'
import { fakeClock } from '../support/fake-clock.ts'
import { seedOf } from '../support/random.ts'
import { realmStorm } from '../support/realm-storm.ts'
import { BIN, startPostgres } from '../support/standby.ts'

test.skipIf(!BIN)(
  'hubs that are killed at random moments of each minute',
  async () => {
    const [clock, ...clocks] = [fakeClock(), fakeClock(), fakeClock()]
    if (!clock || !clocks[0] || !clocks[1]) return
    await using server = await startPostgres(clock.env)
    const kills = process.env.CADRE_SLOW_TESTS ? 30 : 4
    const options = { database: server.location, clock, clocks: [clocks[0], clocks[1]] }
    const toll = await realmStorm({ ...options, seed: seedOf('realm storm'), schedules: 12, kills })
    console.log(`realm storm: ${JSON.stringify(toll)}`)
    expect(toll.kills).toBe(kills)
    expect(toll.states.started!).toBeGreaterThan(10)
  },
  240_000,
)
