// A hundred ends of runs that a daemon reports to hubs which are killed at random moments, as often as it takes until they
// are acknowledged: each starts one run of the chain that follows it. On SQLite one hub serves, and on PostgreSQL two.

import { describe, expect, test } from 'bun:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/bounded.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { DATABASES, publish, rowsIn, signedIn, startHub, stop } from '../support/served-hubs.ts'
import { runChange } from '../support/sync.ts'

const ENDS = 100
const KILLS = process.env.CADRE_SLOW_TESTS ? 20 : 3

const teamText = (name: string) =>
  `name: "@admin/${name}"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n`

describe.each(DATABASES)('on $name', ({ hubs: count, open }) => {
  test('each of a hundred ends starts one run, although hubs are killed', async () => {
    await using database = await open()
    const random = randomFrom(seedOf('ends of a realm'))
    const hubs = await Promise.all(Array.from({ length: count }, () => startHub(database.location)))
    const { call, realm_id } = await signedIn(() => random.of(hubs).url)
    for (const name of ['build', 'next']) await publish(call, realm_id, `@admin/${name}`, teamText(name))
    await call('triggers/add', { realm_id, name: 'follow', kind: 'chain', team: '@admin/next', after: 'build' })
    const { token } = await call('auth/generate_token', { type: 'realm', name: 'd', realm_ids: [realm_id] })
    const { daemon_id } = await call('daemons/register', { name: 'd' }, token)
    const epoch = crypto.randomUUID()
    const ids = Array.from({ length: ENDS }, () => Bun.randomUUIDv7())
    const build = { team: '@admin/build', call_path: ['@admin/build'] }
    const now = Date.now()
    const over = { ...build, state: 'completed', started_at: now, completed_at: now }
    const changes = ids
      .flatMap(id => [runChange(id, { ...build, started_at: now }), runChange(id, over)])
      .map((change, at) => ({ ...change, seq: at + 1 }))
    const reportAll = async () => {
      for (let at = 0; at < changes.length; ) {
        const some = changes.slice(at, at + 1 + random.below(8))
        const batch = { protocol: 1, daemon_id, epoch, from_seq: at + 1, changes: some }
        // A hub that is killed has committed the batch or not, and the other one may be asked next.
        const reply = await call('runs/sync', batch, token).catch(() => null)
        if (reply === null) await sleep(50)
        else at = reply.acked_seq
      }
    }
    const killSome = async () => {
      for (let n = 0; n < KILLS; n++) {
        await sleep(300 + random.below(1_200))
        const at = random.below(hubs.length)
        hubs[at]!.child.kill('SIGKILL')
        await hubs[at]!.child.exited
        hubs[at] = await startHub(database.location)
      }
    }
    await Promise.all([reportAll(), killSome()])
    const started = async () =>
      (await call('triggers/firings', { realm_id, name: 'follow', state: 'started', limit: 1 }).catch(() => null))
        ?.total
    await until(async () => (await started()) === ENDS, 'all have started', 60_000)
    await stop(hubs)
    const { firings, runs } = await rowsIn(database.location)
    expect(firings.map(({ occasion }) => occasion).sort()).toEqual(ids.toSorted())
    const followed = new Map(firings.map(({ run_id, occasion }) => [run_id!, occasion]))
    const others = runs.filter(({ run_id }) => !ids.includes(run_id))
    expect(others.map(({ run_id }) => run_id).sort()).toEqual([...followed.keys()].sort())
    for (const { run_id, started_by } of others) {
      expect(started_by).toMatchObject({ kind: 'chain', run_id: followed.get(run_id)!, depth: 1 })
    }
  }, 180_000)
})
