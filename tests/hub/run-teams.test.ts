// The names of teams that runs had, which the page of runs offers as a filter.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { addRealm, addToHub, madeId } from '../support/many-runs.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
  await addRealm(hub, 'other')
})
afterAll(() => hub.stop())

test('a list has each team of a top run once, by name, of the realms that the caller sees', async () => {
  await addToHub(hub, hub.realm, [
    { number: 1, team: '@b/t' },
    { number: 2, team: '@a/t' },
    { number: 3, team: '@a/t' },
  ])
  await addToHub(hub, 'other', [
    { number: 4, team: '@a/t' },
    { number: 5, team: '@c/hidden' },
  ])
  // A sub-run and a run that gets its team later.
  const { runs } = hub.store
  const [one] = await hub.store.db.select().from(runs).limit(1)
  await hub.store.write(tx =>
    tx.insert(runs).values({ ...one!, run_id: 'sub', root_run_id: one!.run_id, team: '@a/sub', tree_key: '/00000001' }),
  )
  await hub.store.write(tx =>
    tx
      .update(runs)
      .set({ team: '@b/changed' })
      .where(eq(runs.run_id, madeId(1))),
  )

  const all = await hub.ok(hub.admin, 'runs/teams')
  expect(all).toEqual({ teams: ['@a/t', '@b/changed', '@b/t', '@c/hidden'], total: 4 })
  expect(await hub.ok(hub.admin, 'runs/teams', { limit: 1, offset: 2 })).toEqual({ teams: ['@b/t'], total: 4 })
  const own = await hub.ok(hub.admin, 'runs/teams', { realm_id: hub.realm })
  expect(own.teams).toEqual(['@a/t', '@b/changed', '@b/t'])

  const { token, id } = await hub.account('reader')
  expect(await hub.ok(token, 'runs/teams')).toEqual({ teams: [], total: 0 })
  const { realmMembers } = hub.store
  await hub.store.write(tx => tx.insert(realmMembers).values({ realm_id: 'other', user_id: id, role: 'member' }))
  expect((await hub.ok(token, 'runs/teams')).teams).toEqual(['@a/t', '@c/hidden'])
})
