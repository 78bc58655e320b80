// A hub on an older copy of its database: what waits in the copy was executed since, and is not executed again.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { CopiedHub, type Place, postgresPlace, sqlitePlace } from '../support/older-copy.ts'

const server = process.env.TEST_POSTGRES_URL

const names = (count: number) => Array.from({ length: count }, (_, at) => `run-${String(at).padStart(2, '0')}`)

async function notTwice(place: Place, count: number): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  await hub.enrol('ada', 'bob')
  const texts = names(count)
  const runs: string[] = []
  for (const text of texts) runs.push(await hub.dispatch(text))
  await place.copy()
  await hub.daemon('ada')
  await hub.completed(runs)
  await hub.leave('ada')
  await hub.restore(place)

  const bob = await hub.daemon('bob')
  const later = await hub.dispatch('later')
  await hub.completed([later])
  await until(() => bob.output.stderr.includes('older copy'), 'bob is asked for what it has')
  const { jobs } = await hub.ok('dispatch/queue', { realm_id: hub.realm })
  expect(jobs).toHaveLength(count)
  for (const job of jobs) {
    expect(job).toMatchObject({ state: 'held', waiting_for: expect.stringContaining('daemon ada to report') })
  }
  expect(hub.lines).toEqual([...texts, 'later'].sort())

  await hub.daemon('ada')
  await hub.completed(runs)
  expect(hub.lines).toEqual([...texts, 'later'].sort())
  const [run] = runs
  expect((await hub.ok('runs/logs', { run_id: run })).lines.map((line: { text: string }) => line.text)).toContain(
    'run-00',
  )
  const after = await hub.dispatch('after')
  await hub.completed([after])
}

async function notForEver(place: Place): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  await hub.enrol('ada')
  const runs = [await hub.dispatch('first'), await hub.dispatch('second')]
  await place.copy()
  await hub.daemon('ada')
  await hub.completed(runs)
  const lost = await hub.dispatch('third')
  await hub.completed([lost])
  await hub.restore(place, 'SIGKILL')
  await hub.completed([...runs, lost])
  expect(hub.lines).toEqual(['first', 'second', 'third'])
  const [job] = (await hub.ok('dispatch/queue', { realm_id: hub.realm })).jobs
  expect(job).toBeUndefined()
}

// How many wait makes no difference to how the copy is noticed.
for (const [way, count] of [
  ['restore', 20],
  ['copied file', 2],
  ['written over', 2],
  ['renamed file', 2],
] as const) {
  test(
    `SQLite, ${way}: ${count} runs that were executed since are not executed again`,
    () => notTwice(sqlitePlace(way), count),
    120_000,
  )
}
test(
  'SQLite: the runs of a single daemon that executed them are shown as ended',
  () => notForEver(sqlitePlace('restore')),
  120_000,
)

test.skipIf(!server)(
  'PostgreSQL: 20 runs that were executed since are not executed again (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using place = await postgresPlace(server!)
    await notTwice(place, 20)
  },
  120_000,
)

test.skipIf(!server)(
  'PostgreSQL: the runs of a single daemon that executed them are shown as ended (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using place = await postgresPlace(server!)
    await notForEver(place)
  },
  120_000,
)

test.skipIf(!server)(
  'PostgreSQL: a database that is replaced while a hub serves it (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using place = await postgresPlace(server!)
    await using hub = await CopiedHub.start(place.database)
    await hub.enrol('ada', 'bob')
    const runs = [await hub.dispatch('one'), await hub.dispatch('two')]
    await place.copy()
    await hub.daemon('ada')
    await hub.completed(runs)
    await hub.leave('ada')
    await place.put()
    await hub.daemon('bob')
    const ended = async () => (await hub.call('auth/whoami').catch(() => null))?.status === 401
    await until(ended, 'the session ends')
    await hub.signIn()
    const found = await hub.ok('daemons/reconcile', { realm_id: hub.realm })
    expect(found).toMatchObject({ held: 2, older_copy: { kind: 'restored' } })
    await Bun.sleep(2_000)
    expect(hub.lines).toEqual(['one', 'two'])
    await hub.daemon('ada')
    await hub.completed(runs)
    expect(hub.lines).toEqual(['one', 'two'])
  },
  120_000,
)
