// An older copy that has everything in common with the database: only the daemons can tell it, by the count of commits
// that they remember.

import { expect, test } from 'bun:test'
import { isPostgres } from '../../db/hub/store.ts'
import { until } from '../support/bounded.ts'
import { CopiedHub, type Place, postgresPlace, sqlitePlace } from '../support/older-copy.ts'

const server = process.env.TEST_POSTGRES_URL

async function noticed(place: Place): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  await hub.enrol('ada', 'bob')
  const runs = [await hub.dispatch('one'), await hub.dispatch('two')]
  await place.copy()
  await hub.daemon('ada')
  await hub.completed(runs)
  const commit = async () => {
    for (let n = 0; n < 30; n++) {
      await hub.ok('auth/generate_token', { type: 'realm', name: `lost ${n}`, realm_ids: [hub.realm] })
    }
  }
  // Where several hubs may serve, more commits have to be lost than the hub makes until its first daemon calls.
  if (isPostgres(place.database)) await commit()
  // It has heard the hub after the copy.
  await hub.daemon('bob')
  for (const name of ['ada', 'bob']) await hub.leave(name)
  await hub.restore(place)
  if (!isPostgres(place.database)) await commit()
  const standing = async () => hub.ok('daemons/reconcile', { realm_id: hub.realm })
  expect((await standing()).older_copy).toBeNull()
  const { id: other } = await hub.ok('realms/create', { org_id: 1, slug: 'other', name: 'other' })
  await hub.daemon('bob')
  const found = await until(async () => ((await standing()).held === 2 ? standing() : undefined), 'what waited is held')
  expect(found.older_copy).toMatchObject({ kind: 'behind', lost: true })
  // The realm of that daemon alone is concerned.
  expect((await hub.ok('daemons/reconcile', { realm_id: other })).older_copy).toBeNull()
  await Bun.sleep(2_000)
  expect(hub.lines).toEqual(['one', 'two'])
  await hub.daemon('ada')
  await hub.completed(runs)
  expect(hub.lines).toEqual(['one', 'two'])
  await until(async () => (await standing()).older_copy.ended_at !== null, 'the hub trusts its database')
}

test('SQLite: a machine that was put back as a whole', () => noticed(sqlitePlace('snapshot')), 90_000)

test.skipIf(!server)(
  'PostgreSQL that does not tell where a database is (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using place = await postgresPlace(server!, { tellsPlace: false })
    await noticed(place)
  },
  90_000,
)

test('what a daemon remembers of another database, or with a wrong signature, holds nothing', async () => {
  const place = sqlitePlace('restore')
  await using hub = await CopiedHub.start(place.database)
  const { token } = await hub.ok('auth/generate_token', { type: 'realm', name: 'x', realm_ids: [hub.realm] })
  const person = hub.token
  const asDaemon = async (path: string, body: object) => {
    hub.token = token
    const data = await hub.ok(path, body)
    hub.token = person
    return data
  }
  const { daemon_id, memory } = await asDaemon('daemons/register', { name: 'eve' })
  expect(memory).toEqual({ lineage: expect.any(String), count: expect.any(Number), mac: expect.any(String) })
  const far = { ...memory, count: memory.count + 1_000 }
  await asDaemon('daemons/heartbeat', { daemon_id, memory: far })
  await asDaemon('daemons/heartbeat', { daemon_id, memory: { ...far, lineage: crypto.randomUUID() } })
  const later = await asDaemon('daemons/poll', { daemon_id, memory })
  expect(later.memory.lineage).toBe(memory.lineage)
  expect(later.memory.count).toBeGreaterThanOrEqual(memory.count)
  expect((await hub.ok('daemons/reconcile', { realm_id: hub.realm })).older_copy).toBeNull()
  expect(hub.stderr).toContain('its count is not signed by this database')
  expect(hub.stderr).toContain('it remembers another database')
}, 60_000)
