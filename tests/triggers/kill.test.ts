// A daemon that dies by SIGKILL at its first write, at its second, and so on to the last: whenever it died, the next one
// makes one firing of each slot, and one run of each firing that starts.

import { afterAll, expect, test } from 'bun:test'
import { bundled } from '../support/chaos-bundle.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { checkFirings } from '../support/firing-rules.ts'
import { folder } from '../support/folder.ts'
import { killedAt, walkOfKills } from '../support/kill-walk.ts'
import { seedOf } from '../support/random.ts'
import { triggerStorm } from '../support/trigger-storm.ts'

const program = await bundled('trigger-process.ts')
afterAll(() => program.remove())

/** All writes take a minute; the gate takes one of eight, from another one each time. */
const EVERY = process.env.CADRE_SLOW_TESTS ? 1 : 8

test('wherever it dies, each slot has one firing, and each start one run', async () => {
  const writes = await walkOfKills(async n => {
    const home = folder()
    const died = await killedAt(n, home, program.program)
    expect(await killedAt(0, home, program.program)).toBe(false)
    // Twelve minutes of three schedules, of which the last ones are never late.
    expect(checkFirings(home)).toEqual({ started: expect.any(Number), skipped: expect.any(Number) })
    return died
  }, EVERY)
  console.log(`kill at one write of ${EVERY}: ${writes} writes`)
  expect(writes).toBeGreaterThanOrEqual(15)
}, 120_000)

test('daemons that are killed at random moments of each minute', async () => {
  const clock = fakeClock()
  if (!clock) return
  const toll = await triggerStorm({ seed: seedOf('trigger storm'), schedules: 12, kills: 2, clock })
  console.log(`trigger storm: ${JSON.stringify(toll)}`)
  expect(toll.kills).toBe(2)
  expect(toll.states.started!).toBeGreaterThan(10)
}, 120_000)
