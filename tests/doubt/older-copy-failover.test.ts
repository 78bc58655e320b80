// A standby that is promoted: with everything, the hub goes on within seconds; without the last part, what was executed
// is not executed again.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { CopiedHub } from '../support/older-copy.ts'
import { BIN, StandbyPair } from '../support/standby.ts'

const promoted = test.skipIf(BIN === null)
const GOES_ON_MS = 15_000

const kindOf = async (hub: CopiedHub) => (await hub.ok('daemons/reconcile', { realm_id: hub.realm })).older_copy

promoted(
  'without loss, the hub goes on within 15 seconds, although a daemon is gone',
  async () => {
    await using pair = await StandbyPair.start()
    await using hub = await CopiedHub.start(pair.location)
    await hub.daemon('gone')
    await hub.daemon('ada')
    await hub.completed([await hub.dispatch('before')])
    for (const name of ['gone', 'ada']) await hub.leave(name)
    const waits = await hub.dispatch('waits')
    await pair.catchUp()
    await pair.promote()
    const promotedAt = Date.now()
    await hub.daemon('ada')
    await hub.completed([waits], GOES_ON_MS)
    expect(Date.now() - promotedAt).toBeLessThan(GOES_ON_MS)
    expect(await kindOf(hub)).toMatchObject({ kind: 'failover', lost: false, ended_at: expect.any(Number) })
    expect(hub.lines).toEqual(['before', 'waits'])
  },
  120_000,
)

async function lossy(way: 'goes on' | 'is killed'): Promise<void> {
  await using pair = await StandbyPair.start()
  await using hub = await CopiedHub.start(pair.location)
  await hub.enrol('ada', 'bob')
  const runs = [await hub.dispatch('one'), await hub.dispatch('two')]
  await pair.catchUp()
  await pair.cut()
  await hub.daemon('ada')
  await hub.completed(runs)
  const later = await hub.dispatch('later')
  await hub.completed([later])
  await hub.leave('ada')
  if (way === 'is killed') await hub.stop('SIGKILL')
  await pair.promote()
  if (way === 'is killed') await hub.serve()
  const bob = await hub.daemon('bob')
  await until(async () => (await kindOf(hub).catch(() => null)) !== null, 'the hub notices')
  // It has asked for jobs by then.
  await until(() => bob.output.stderr.includes('enrolled'), 'bob is there')
  await Bun.sleep(3_000)
  expect(hub.lines).toEqual(['later', 'one', 'two'])
  await hub.daemon('ada')
  await hub.completed([...runs, later], 40_000)
  expect(hub.lines).toEqual(['later', 'one', 'two'])
  const after = await hub.dispatch('after')
  await hub.completed([after])
  await until(async () => (await kindOf(hub)).ended_at !== null, 'the hub trusts its database')
  expect(await kindOf(hub)).toMatchObject({ kind: 'failover', lost: true })
}

promoted('with the last part lost, a hub that goes on executes nothing again', () => lossy('goes on'), 120_000)
promoted(
  'with the last part lost, a hub that is killed and started again executes nothing again',
  () => lossy('is killed'),
  120_000,
)
