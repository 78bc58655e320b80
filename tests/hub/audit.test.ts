// What the audit log has besides a line for every change: passwords that were wrong, who was given what, and what daemons
// answered for.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

interface Entry {
  action: string
  target: string
}

/** What `action` left, newest first. */
const left = async (action: string): Promise<Entry[]> => (await hub.ok(hub.admin, 'audit/list', { action })).audit

test('sign-ins that failed, with the account or none, and never what was typed', async () => {
  await hub.account('ann')
  for (const username of ['ann', 'hunter2', 'typed: Hunter2']) {
    expect((await hub.call(null, 'session/create', { username, password: 'hunter3' })).status).toBe(401)
  }
  const nobody = { target: 'no such account', user_id: null, username: null, address: '127.0.0.1' }
  expect(await left('session/create_failed')).toMatchObject([nobody, nobody, { ...nobody, target: 'ann' }])
  const { audit } = await hub.ok(hub.admin, 'audit/list', { limit: 100 })
  expect(JSON.stringify(audit).toLowerCase()).not.toContain('hunter')
})

test('passwords that were wrong when they should be changed', async () => {
  const { token } = await hub.account('bob')
  const change = (password: string) =>
    hub.call(token, 'users/change_password', { password, new_password: 'another one' })
  expect((await change('x')).status).toBe(403)
  expect((await change('password of a test')).status).toBe(200)
  expect(await left('users/change_password_failed')).toMatchObject([{ target: 'bob', username: 'bob' }])
  expect(await left('users/change_password')).toMatchObject([{ target: 'bob', username: 'bob' }])
})

test('who was made a site admin, renamed, given a password, or lost the tokens', async () => {
  const { id: user_id } = await hub.account('cid')
  await hub.ok(hub.admin, 'users/create', { username: 'dan', password: 'long enough', site_admin: true })
  await hub.ok(hub.admin, 'users/update', { user_id, site_admin: true })
  await hub.ok(hub.admin, 'users/update', { user_id, password: 'another one', revoke_tokens: true })
  await hub.ok(hub.admin, 'users/update', { user_id, site_admin: false, username: 'carl' })
  expect((await left('users/update')).map(({ target }) => target)).toEqual([
    'cid: renamed to carl, no longer a site admin',
    'cid: password set, tokens revoked',
    'cid: made a site admin',
  ])
  expect((await left('users/create')).map(({ target }) => target)).toEqual(['dan as site admin'])
})

test('which token took over a daemon, and what a daemon answered for a job', async () => {
  const team = '@admin/x'
  const text = `name: "${team}"\nversion: 1.0.0\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n`
  await hub.addTeam(text)
  const [first, second] = [await hub.realmToken(hub.admin, hub.realm), await hub.realmToken(hub.admin, hub.realm)]
  const { daemon_id } = await hub.ok(first.token, 'daemons/register', { name: 'd' })
  await hub.ok(first.token, 'daemons/register', { name: 'd', daemon_id })
  expect(await left('daemons/takeover')).toEqual([])
  await hub.ok(second.token, 'daemons/register', { name: 'd', daemon_id })
  const place = { realm_id: hub.realm, org_id: 1 }
  expect(await left('daemons/takeover')).toMatchObject([
    { target: `${daemon_id} from token ${first.id}`, token_id: second.id, ...place },
  ])
  expect(await left('daemons/register')).toHaveLength(1)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team })
  const { jobs } = await hub.ok(second.token, 'daemons/poll', { daemon_id, slots: 1 })
  const { job_id, lease_id } = jobs[0]
  for (const status of ['accepted', 'done']) {
    await hub.ok(second.token, 'daemons/ack', { daemon_id, job_id, lease_id, status })
  }
  const by = { token_id: second.id, ...place }
  expect(await left('daemons/ack')).toMatchObject([
    { target: `done run job ${job_id}, run ${run_id}`, ...by },
    { target: `accepted run job ${job_id}, run ${run_id}`, ...by },
  ])
})
