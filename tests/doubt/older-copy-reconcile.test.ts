// What people see of an older copy of the hub's database, and how they go on without a daemon that is gone.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { CopiedHub, sqlitePlace } from '../support/older-copy.ts'

const place = sqlitePlace('restore')
let hub: CopiedHub
let runs: string[]

beforeAll(async () => {
  hub = await CopiedHub.start(place.database)
  await hub.enrol('ada', 'bob')
  runs = [await hub.dispatch('one'), await hub.dispatch('two')]
  await place.copy()
  // Enrolled after the copy, with a token that the copy does not know.
  await hub.daemon('cora')
  await hub.completed(runs)
  const before = hub.token
  await hub.stop()
  await place.put()
  await hub.serve(false)
  hub.token = before
}, 60_000)
afterAll(() => hub[Symbol.asyncDispose]())

const standing = async () => hub.ok('daemons/reconcile', { realm_id: hub.realm })

async function ready(): Promise<{ status: string; older_copy?: string }> {
  const reply = await fetch(`${hub.url}/ready`)
  expect(reply.status).toBe(200)
  return ((await reply.json()) as { data: { status: string } }).data
}

test('sessions end, because one that was ended since would count again', async () => {
  expect((await hub.call('auth/whoami')).status).toBe(401)
  await hub.signIn()
})

test('readiness, metrics and log say it, and the hub is ready', async () => {
  expect((await ready()).older_copy).toContain('2 of 2 daemons have not reported')
  const metrics = await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${hub.token}` } })
  expect(await metrics.text()).toContain('cadre_hub_older_copy 1')
  expect(hub.stderr).toContain('the database is an older copy')
})

test('a person sees who has not reported and why, what was lost and what came back', async () => {
  const strangers = async () =>
    (await standing()).awaited.find(({ why }: { why: string }) => why.includes('enrol again'))
  await until(async () => (await strangers()) !== undefined, 'the daemon whose token is not known', 40_000)
  const found = await standing()
  expect(found).toMatchObject({ held: 2, passed: [], older_copy: { kind: 'restored', lost: true, ended_at: null } })
  const why = Object.fromEntries(found.awaited.map((each: { name: string; why: string }) => [each.name, each.why]))
  expect(why).toMatchObject({ ada: expect.stringContaining('has not called'), bob: expect.stringContaining('has not') })
  expect(found.lost[0]).toContain('accounts')
  const { daemon_id } = found.awaited.find(({ name }: { name: string }) => name === 'bob')
  expect(await hub.call('dispatch/move', { run_id: runs[0], daemon_id })).toMatchObject({ status: 409 })
  expect(found.came_back[0]).toContain('revoked')
}, 60_000)

test('the hub goes on without the daemons that a realm admin names, which the audit log of the org tells', async () => {
  await hub.daemon('bob')
  await until(
    async () => (await standing()).awaited.every(({ name }: { name: string }) => name !== 'bob'),
    'bob reports',
  )
  expect(await hub.call('daemons/reconcile', { realm_id: hub.realm, without: 'nobody' })).toMatchObject({ status: 404 })
  expect((await standing()).held).toBe(2)
  const after = await hub.ok('daemons/reconcile', { realm_id: hub.realm, without: 'ada' })
  expect(after).toMatchObject({ held: 0, passed: [{ name: 'ada' }], older_copy: { ended_at: expect.any(Number) } })
  await hub.completed(runs)
  // The person has decided that they are executed again.
  expect(hub.lines).toEqual(['one', 'one', 'two', 'two'])
  const told = async () =>
    (await hub.ok('audit/list', { org_id: 1 })).audit.find(
      ({ action }: { action: string }) => action === 'daemons/reconcile',
    )
  expect(await until(told, 'the entry of the audit log')).toMatchObject({
    username: 'admin',
    realm_id: hub.realm,
    target: expect.stringContaining('without ada'),
  })
  expect(await ready()).toEqual({ status: 'ready' })
}, 60_000)
