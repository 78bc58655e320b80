// A daemon that a plain member of a realm enrolled takes no jobs until an operator approves it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
let realm: string
const team = '@admin/x'
const people = {} as Record<'member' | 'operator' | 'admin', string>

beforeAll(async () => {
  hub = await startTestHub()
  realm = hub.realm
  for (const role of ['member', 'operator', 'admin'] as const) {
    people[role] = (await hub.account(`the-${role}`)).token
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: `the-${role}`, role })
  }
  const text = `name: "${team}"\nversion: 1.0.0\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n`
  await hub.addTeam(text)
})
afterAll(() => hub.stop())

async function enrol(person: string, more: object = {}) {
  const { id, token } = await hub.realmToken(person, realm)
  const { daemon_id, approved } = await hub.ok(token, 'daemons/register', { name: 'd', ...more })
  return { id: id as number, token: token as string, daemon_id: daemon_id as string, approved: approved as boolean }
}
type Enrolled = Awaited<ReturnType<typeof enrol>>

const told = async ({ daemon_id }: Enrolled) => {
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: realm, limit: 100 })
  const listed = daemons.find((each: { id: string }) => each.id === daemon_id)
  const { approved } = await hub.ok(people.member, 'daemons/get', { daemon_id })
  expect(listed.approved).toBe(approved)
  return approved as boolean
}
const dispatch = (daemon_id: string) => hub.ok(hub.admin, 'dispatch/run', { daemon_id, team })
const poll = async ({ token, daemon_id }: Enrolled, wait_ms = 0) =>
  (await hub.ok(token, 'daemons/poll', { daemon_id, slots: 9, wait_ms })).jobs as { job_id: string; lease_id: string }[]
const approve = (person: string, daemon_id: string) => hub.call(person, 'daemons/approve', { daemon_id })

test.each(['operator', 'admin'] as const)('that of an %s is approved', async role => {
  const daemon = await enrol(people[role])
  expect([daemon.approved, await told(daemon)]).toEqual([true, true])
  await dispatch(daemon.daemon_id)
  expect(await poll(daemon)).toHaveLength(1)
})

test('that of a member waits for an operator, and has its jobs then', async () => {
  const daemon = await enrol(people.member)
  const { daemon_id, token } = daemon
  expect([daemon.approved, await told(daemon)]).toEqual([false, false])
  const queued = await dispatch(daemon_id)
  expect(queued.waiting_for).toContain('daemons/approve')
  expect(await poll(daemon)).toEqual([])
  expect(await hub.ok(token, 'daemons/heartbeat', { daemon_id })).toMatchObject({ status: 'online', approved: false })
  expect((await approve(people.member, daemon_id)).status).toBe(403)
  const waiting = poll(daemon, 20_000)
  await Bun.sleep(100)
  const asked = performance.now()
  expect(await approve(people.operator, daemon_id)).toMatchObject({
    status: 200,
    data: { id: daemon_id, approved: true },
  })
  expect(await waiting).toMatchObject([{ run_id: queued.run_id }])
  expect(performance.now() - asked).toBeLessThan(4_000)
  expect(await hub.ok(token, 'daemons/heartbeat', { daemon_id })).toMatchObject({ approved: true })
  // Said once, however often it is asked; and it stays so when the daemon starts again.
  expect((await approve(people.operator, daemon_id)).status).toBe(200)
  const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'daemons/approve' })
  expect(audit).toMatchObject([{ target: daemon_id, realm_id: realm, org_id: 1, username: 'the-operator' }])
  expect(await hub.ok(token, 'daemons/register', { daemon_id, name: 'd' })).toMatchObject({ approved: true })
})

test('a run waits for a daemon that is approved, not for one that is online', async () => {
  const { id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'waits', name: 'W' })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: id, team })
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: id, username: 'the-member', role: 'member' })
  const { token } = await hub.realmToken(people.member, id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd' })
  const queued = await hub.ok(hub.admin, 'dispatch/run', { realm_id: id, team })
  expect(queued.waiting_for).toContain('approved')
  expect((await hub.ok(token, 'daemons/poll', { daemon_id, slots: 1 })).jobs).toEqual([])
})

test('who takes over the id of a revoked token has no jobs of it without the role of the one before', async () => {
  const before = await enrol(people.operator)
  const { daemon_id } = before
  const [held, running, later] = [await dispatch(daemon_id), await dispatch(daemon_id), await dispatch(daemon_id)]
  const [first, second] = (await hub.ok(before.token, 'daemons/poll', { daemon_id, slots: 2 })).jobs
  expect([first.run_id, second.run_id]).toEqual([held.run_id, running.run_id])
  const answer = (token: string, { job_id, lease_id }: typeof first) =>
    hub.call(token, 'daemons/ack', { daemon_id, job_id, lease_id, status: 'accepted' })
  expect((await answer(before.token, second)).status).toBe(200)
  await hub.ok(people.operator, 'auth/revoke_token', { id: before.id })

  const taken = await enrol(people.member, { daemon_id })
  expect(taken).toMatchObject({ daemon_id, approved: false })
  expect(await poll(taken)).toEqual([])
  expect(await answer(taken.token, first)).toMatchObject({ status: 409, error: { code: 'conflict' } })
  // Nor does it tell what became of a run that the one before was given.
  const at = { root_run_id: running.run_id, parent_run_id: running.run_id, parent_phase: 'p', call_depth: 1 }
  const sub = runChange(crypto.randomUUID(), { ...at, team, call_path: [team, team], tree_key: '000000000' })
  const own = { team, call_path: [team] }
  for (const change of [runChange(running.run_id, { ...own, state: 'failed', completed_at: 2_000 }), sub]) {
    const batch = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes: [{ seq: 1, ...change }] }
    expect(await hub.call(taken.token, 'runs/sync', batch)).toMatchObject({
      status: 403,
      error: { message: expect.stringContaining('daemons/approve') },
    })
  }
  // What it started itself it may report.
  const local = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1 }
  const changes = [{ seq: 1, ...runChange(crypto.randomUUID(), own) }]
  expect((await hub.ok(taken.token, 'runs/sync', { ...local, changes })).rejected).toEqual([])

  expect((await approve(people.admin, daemon_id)).status).toBe(200)
  expect(await poll(taken)).toMatchObject([{ run_id: later.run_id }])
})

test('the same owner’s other token keeps the approval; a removed daemon has lost it', async () => {
  const daemon = await enrol(people.member)
  const { daemon_id } = daemon
  expect((await approve(people.operator, daemon_id)).status).toBe(200)
  expect((await enrol(people.member, { daemon_id })).approved).toBe(true)
  await hub.ok(hub.admin, 'daemons/remove', { daemon_id })
  expect((await approve(people.operator, daemon_id)).status).toBe(409)
  expect((await enrol(people.member, { daemon_id })).approved).toBe(false)
})

test('daemons enrolled by somebody who has become an operator since are approved when they start', async () => {
  const rising = (await hub.account('rising')).token
  const member = { realm_id: realm, username: 'rising' }
  await hub.ok(hub.admin, 'realms/add_member', { ...member, role: 'member' })
  const daemon = await enrol(rising)
  await hub.ok(hub.admin, 'realms/add_member', { ...member, role: 'operator' })
  const again = { daemon_id: daemon.daemon_id, name: 'd' }
  expect([daemon.approved, (await hub.ok(daemon.token, 'daemons/register', again)).approved]).toEqual([false, true])
})
